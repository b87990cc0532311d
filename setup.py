"""Which packages there are, and what ROS 2 looks for; all else is in pyproject.toml, which cannot name found packages beside a
mapped one (robots)."""

from setuptools import find_packages, setup

setup(
    license="BSD-2-Clause",
    python_requires=">=3.10",
    packages=[*find_packages(include=["urdf_ident", "urdf_ident.*"]), "urdf_ident_robots"],
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/urdf_ident"]),
        ("share/urdf_ident", ["package.xml"]),
    ],
)
