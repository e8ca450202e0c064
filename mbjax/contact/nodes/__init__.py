"""Contact of deformable bodies: points between their surfaces and collision geometries, and the step with their nodes."""
