"""Pictures of what a reward model said."""
