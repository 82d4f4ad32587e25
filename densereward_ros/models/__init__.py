"""Reward models: windows in, verdicts out."""
