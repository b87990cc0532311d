"""What is judged of logs and results: judgements with severity and remedy, and the catalogue of their kinds."""
