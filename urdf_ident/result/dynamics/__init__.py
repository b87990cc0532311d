"""The identified robot as functions: equation of motion, intervals, friction curves, springs, the adaptive model."""
