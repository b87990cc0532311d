"""How far an estimate can be trusted: autocorrelated noise, standard errors that cover, what is essential, what is unseen.

The usual standard errors take neighbouring samples for independent. They are not, and on real logs those errors come out
several times too small; everything here begins with what the residuals show of the noise.
"""
