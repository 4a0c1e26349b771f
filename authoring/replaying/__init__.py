"""Two configs beside each other: what differs in them, and in what comes of the same capture."""
