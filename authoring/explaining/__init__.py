"""What a config is built to, in words and as a graph: where things stand, what waits, what may be lost."""
