"""The verdict on a result, its reasons, and what the data did not test."""
