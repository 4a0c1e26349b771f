"""Reverts: the running graph becomes that of a file, as a plan says."""
