"""Files: safe reading, atomic writing, sets of files, output folders, limits on size, YAML and JSON."""
