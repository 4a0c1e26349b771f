"""Tables: how fields of messages become columns, once for every database."""
