"""Points of contact: where pairs of shapes touch or may touch, all of them or a list of those that act."""
