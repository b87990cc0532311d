"""What is judged of logs and results: findings with severity and remedy."""
