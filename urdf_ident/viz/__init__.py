"""A robot and its motion in Meshcat, live or as one offline page.

The scene is a list of Meshcat commands embedded in the page, so that the file and the live view are identical and the
browser plays in real time even over a slow connection.
"""

from .motion import Motion, as_motion, read_motion
from .page import player_page
from .player import play

__all__ = ["Motion", "as_motion", "play", "player_page", "read_motion"]
