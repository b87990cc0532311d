"""The result of an identification: what it is, how it is written down, how it reads on one screen."""
