"""A result as text: the short and the full summary."""
