"""Measurements: what the product costs beside code written by hand that does the same.

`python -m bench` runs every scenario, `python -m bench batch1 chain` some of them; with ``--write``
the table goes into `bench/results.md`. Every figure is a ratio taken in one run on one core.
"""
