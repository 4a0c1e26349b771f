"""Lowering: from a validated config to one cold observable per pipeline."""
