"""A robot to try things on whose truth is known, and that is harder than the model that is fitted to it.

Friction is written a second time here, apart from the identification's columns: an estimator that is judged by its own
formula learns nothing. It acts on *sliders* (joints or motors) with a direction of slip as part of the state, because a
joint that sticks has no velocity whose sign could be taken.
"""
