"""What pipelines show of themselves: counts, failures, history, and the live feed."""
