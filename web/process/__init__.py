"""The process that serves: its socket, its connections, its log."""
