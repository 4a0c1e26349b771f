"""What imports a driver at its top. The catalogue does not scan it: it is loaded with the first user."""
