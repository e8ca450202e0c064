"""Adapters: environments as the learners of others take them. Each package is imported where it is needed."""

from .brax_training import as_brax as as_brax
from .gymnasium_vector import as_gymnasium as as_gymnasium
from .orbax_checkpoint import restore_checkpoint as restore_checkpoint
from .orbax_checkpoint import save_checkpoint as save_checkpoint
from .torch_vector import as_torch as as_torch
from .torch_vector import torch_function as torch_function
