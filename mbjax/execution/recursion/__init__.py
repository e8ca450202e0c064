"""Recursions: scans over a tree, the stages of their steps, and the rows that they read and write."""
