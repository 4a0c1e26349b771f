"""How commands end. 2 is a mistake on the command line, and click's."""

FINE = 0
REFUSED = 1
"""Something is refused, failed, or differs."""
NOTHING = 5
"""Nothing is there that was meant."""
