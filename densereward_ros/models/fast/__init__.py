"""The fast engine: the reference's replies, token for token, from a fraction of the work."""
