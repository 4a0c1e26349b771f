"""Dry runs: what every stage of a chain would do with messages, while nothing that runs is touched."""
