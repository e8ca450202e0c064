"""Benchmarks of mbjax beside its peers: one script a question, one process a peer. `python -m benchmarks`."""
