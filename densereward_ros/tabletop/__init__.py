"""The demo world: a small tabletop robot, its pictures, its mishaps, and the checkpoint that watches it."""
