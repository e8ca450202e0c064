"""The convex problem of a step, the search for its solution, and the solution's derivative."""
