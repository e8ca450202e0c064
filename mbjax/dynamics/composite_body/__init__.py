"""Composite bodies: the mass matrix."""
