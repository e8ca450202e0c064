"""Learners and what becomes of policies: training by gradients, files, tasks by name, MuJoCo; import a module by name."""
