"""Whole configs: read, compared and written again, with what stands beside them."""
