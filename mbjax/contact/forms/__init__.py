"""Forms of contact: ways to work on points in a step, and the one file that chooses."""
