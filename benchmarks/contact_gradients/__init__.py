"""Derivatives through contact, of every engine: `python -m benchmarks.contact_gradients --help`."""
