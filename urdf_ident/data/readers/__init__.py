"""Reading logs: files of any kind in, recordings in SI units and model order out."""
