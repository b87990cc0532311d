"""What a user may rely on: the command line and the public names, against truth and independent oracles.

Nothing here imports from inside the package, and no assertion compares with yesterday's output, so that these tests hold
whatever is rebuilt inside. One simulated experiment serves all of them.
"""
