"""Replays: dead letters go once more through what failed on them."""
