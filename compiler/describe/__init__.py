"""What a config may hold, told to others: the reference, JSON Schema, editors."""
