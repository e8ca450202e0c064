"""Composite-body algorithm: the mass matrix, and the terms of derivatives that add up over subtrees."""
