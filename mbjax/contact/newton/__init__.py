"""The Newton matrix of a step, factored in several ways."""
