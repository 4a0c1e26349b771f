"""Documents as text, read and written with the place of everything in them."""
