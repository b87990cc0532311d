"""Which packages there are; all else is in pyproject.toml, which cannot name found packages beside a mapped one (robots)."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["urdf_ident", "urdf_ident.*"]), "urdf_ident_robots"])
