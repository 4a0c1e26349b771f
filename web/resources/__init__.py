"""The resources: a file for each, with what answers, its rows of the table and the shape of its answers."""
