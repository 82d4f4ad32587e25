"""Verdicts in, failure events out."""
