"""Many worlds: a function of one world becomes one of as many as there are."""
