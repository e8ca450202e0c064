"""Model directives: a YAML file that says which models to add and how to connect them."""

from .reader import DirectivesReader as DirectivesReader
from .yaml_source import find_directives as find_directives
