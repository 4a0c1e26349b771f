"""Captures: what arrives at inputs, and what servers answer `http` transforms, as lines for who asks."""
