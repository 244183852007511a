"""Models: each module runs one, and writes the per-example files that the rest of the project reads."""
