"""Sections of the project file, one per stage; the keys of a section are the arguments of its stage."""
