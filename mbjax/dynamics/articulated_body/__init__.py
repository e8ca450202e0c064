"""Articulated-body algorithm: forward dynamics, and a factor of M, in O(n)."""
