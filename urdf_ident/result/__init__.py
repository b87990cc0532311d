"""The result of an identification: its records, verdict, summary and files."""
