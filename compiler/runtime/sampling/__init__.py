"""Samples: a few messages of an input that no pipeline reads, and no trace of having read them."""
