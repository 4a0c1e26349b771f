"""What talks to the outside: one file per system, with its connection, input and output."""
