"""The runtime: what moves batches once a pipeline is subscribed."""
