"""Saving: what runs as files that a server starts from, all of them replaced or none."""
