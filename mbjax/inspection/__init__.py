"""Inspection of models and simulations: what they are, whether their numbers make sense, whether gradients are right."""

from .check_grads import GradientCheck as GradientCheck
from .check_grads import check_grads as check_grads
from .diagnose import Diagnosis as Diagnosis
from .diagnose import diagnose as diagnose
from .description import Description as Description
from .description import describe as describe
