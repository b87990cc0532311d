"""Distances between links and to the world around, certified between samples."""
