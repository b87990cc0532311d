"""The project file: one section a stage, whose keys are the arguments of that stage."""
