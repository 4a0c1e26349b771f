"""What authors of configs use: configs are read, tested, explained and compared without a server."""
