"""What an unknown log holds, told from its numbers: which columns are whose derivative, and which follow gravity in the URDF.

Nothing here judges a log or estimates a parameter. The result is a proposal with a reason for each part of it, written as a
project file that a person reads before it is used.
"""
