"""Articulated bodies: forward dynamics and the factor of M in O(n)."""
