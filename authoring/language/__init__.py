"""The language of test files: durations, marbles, timelines, matchers, and the file as a whole."""
