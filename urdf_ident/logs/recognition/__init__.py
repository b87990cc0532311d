"""Recognition of the columns of an unknown log from its numbers: derivatives of each other, and gravity torques of the URDF.

The quality of the log is not judged and no parameter is estimated. The result is a proposed project file, with a reason for
each entry, that the user reviews before it is used.
"""
