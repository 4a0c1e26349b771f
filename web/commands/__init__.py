"""The command line, a file for each command and what several of them need."""
