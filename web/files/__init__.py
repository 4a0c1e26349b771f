"""The files behind what runs: read at a start, written by a save."""
