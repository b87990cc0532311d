"""Distances between links and to their surroundings, certified between samples."""
