"""Friction that differs between logs: which parameters, by how much, and a payload in some of the logs."""
