"""Models: each module runs one and writes its per-example file."""
