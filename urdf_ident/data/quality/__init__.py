"""Quality checks of logs: findings with remedies, and lossless repairs."""
