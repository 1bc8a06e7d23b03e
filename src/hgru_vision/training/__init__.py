"""One run: its configuration, the loop, its checkpoints, and what came of it."""
