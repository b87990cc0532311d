"""Files: safe reading, atomic writing, sets of files, output folders, kinds, limits on size, YAML and JSON."""
