"""A result in the formats of other programs: URDF, MJCF, SDF, a side-car file, and programs that run on a robot."""
