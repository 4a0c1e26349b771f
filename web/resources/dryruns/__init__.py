"""The dry runs: what a chain, or a script, would do with messages."""
