"""Targets: what a program is lowered for, and kernels of our own there."""
