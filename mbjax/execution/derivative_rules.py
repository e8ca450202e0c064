"""The words of derivative rules written by hand: tangents that may be None, linear functions with a transpose."""

from .linear.linear_maps import fitting as fitting
from .linear.linear_maps import linear_by_hand as linear_by_hand
from .linear.linear_maps import linear_map as linear_map
from .linear.tangents import add_tangents as add_tangents
from .linear.tangents import fit_tangent as fit_tangent
from .linear.tangents import is_none as is_none
from .linear.tangents import moving_with as moving_with
from .linear.tangents import no_tangent as no_tangent
from .linear.tangents import varying_with as varying_with
from .linear.tangents import with_zeros as with_zeros
from .targets.manual_axes import keeping_axes as keeping_axes
from .targets.manual_axes import varying_alike as varying_alike
from .targets.manual_axes import varying_as_after as varying_as_after
