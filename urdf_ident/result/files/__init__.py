"""The files of a result: identification.json written, checked and read, and the formats of other programs."""
