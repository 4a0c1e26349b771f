"""What connectors of servers share: TLS, refusals, what has arrived, and what is sent at once."""
