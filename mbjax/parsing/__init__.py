"""Reads robot files, URDF, SDFormat, MJCF and model directives, and builds a plant or a model of them."""

from .parser import Parser as Parser
from .parser import load as load
