"""XML that remembers its places, the numbers in it, and its text."""
