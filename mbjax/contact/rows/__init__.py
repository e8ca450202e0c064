"""Rows of a step's equation other than contacts."""
