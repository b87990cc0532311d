"""Bundled robots: mesh-free URDFs and their joint truths, installed as ``urdf_ident_robots`` (see README.md)."""
