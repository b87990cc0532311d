"""Uncertainty of an estimate: autocorrelated noise, valid standard errors, essential parameters, identifiability.

The usual standard errors assume that neighbouring samples are independent. They are not, and on real logs these errors are
several times too small; the methods here estimate the noise from the residuals instead.
"""
