"""Metrics of dense reward: one metric a function, one family a file."""
