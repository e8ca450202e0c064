"""The words of derivative rules written by hand: tangents that may be None, linear functions with a transpose."""

from .linear_maps import fitting as fitting
from .linear_maps import linear_by_hand as linear_by_hand
from .linear_maps import linear_map as linear_map
from .manual_axes import keeping_axes as keeping_axes
from .manual_axes import varying_alike as varying_alike
from .manual_axes import varying_as_after as varying_as_after
from .tangents import add_tangents as add_tangents
from .tangents import fit_tangent as fit_tangent
from .tangents import is_none as is_none
from .tangents import moving_with as moving_with
from .tangents import no_tangent as no_tangent
from .tangents import varying_with as varying_with
from .tangents import with_zeros as with_zeros
