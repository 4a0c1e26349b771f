"""A program is played on virtual time: its ends are replaced, and what is between them is the product."""
