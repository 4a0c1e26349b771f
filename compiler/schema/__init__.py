"""What a record of a config may hold: its options, their fields, and secrets."""
