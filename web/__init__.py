"""The HTTP API, the command line and the composition root."""
