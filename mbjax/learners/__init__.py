"""Learners: methods that train policies by the simulator's gradients, one a module, which is imported by its name."""
