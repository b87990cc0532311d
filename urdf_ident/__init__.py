"""Find the dynamic model that a robot really has."""
