"""Tests of configs: files are found, their cases played, what came is compared with what was expected."""
