"""Expected timelines are written again as they came; everything else of a file of tests stays."""
