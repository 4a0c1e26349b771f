"""Who is let in as whom: accounts, tokens, sessions, and the level that each endpoint asks for."""
