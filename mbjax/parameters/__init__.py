"""Chooses numbers of a model by meaning or by name, and maps leaves to unconstrained numbers and back."""

from .leaf_groups import actuation as actuation
from .leaf_groups import chosen as chosen
from .leaf_groups import constraints as constraints
from .leaf_groups import contact as contact
from .leaf_groups import defaults as defaults
from .leaf_groups import force_elements as force_elements
from .leaf_groups import frames as frames
from .leaf_groups import friction as friction
from .leaf_groups import geometry as geometry
from .leaf_groups import gravity as gravity
from .leaf_groups import inertial as inertial
from .leaf_groups import limits as limits
from .leaf_groups import materials as materials
from .leaf_groups import mimics as mimics
from .leaf_groups import options as options
from .leaf_groups import physical as physical
from .leaf_groups import switches as switches
from .leaf_groups import union as union
from .leaf_groups import without as without
from .unconstrained import constrained as constrained
from .unconstrained import unconstrained as unconstrained
from .kind_table import KINDS as KINDS
from .name_patterns import NamedNumber as NamedNumber
from .name_patterns import matching_numbers as matching_numbers
from .name_patterns import named_numbers as named_numbers
from .number_kinds import NumberKind as NumberKind
