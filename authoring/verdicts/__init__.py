"""What came of a test: what came is paired with what was expected, and their difference is told."""
