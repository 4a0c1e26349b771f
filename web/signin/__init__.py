"""Sign-in: the settings file, accounts, tokens, sessions, and who is let in as whom."""
