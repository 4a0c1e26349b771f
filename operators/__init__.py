"""The transforms: batches in, batches out, one file each."""
