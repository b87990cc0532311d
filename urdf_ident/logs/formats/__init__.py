"""One module per kind of log file, which turns the file into a table of named columns."""
