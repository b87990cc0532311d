"""A robot and its motion in Meshcat, live or as one offline page.

The scene is a list of Meshcat commands that the page itself carries, so that the file and the live view are the same
thing: nothing to keep in step, and the browser plays at real speed however slow the connection is.
"""

from .motion import Motion, as_motion, motion_from
from .page import player_page
from .player import play

__all__ = ["Motion", "as_motion", "motion_from", "play", "player_page"]
