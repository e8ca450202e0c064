"""Operations on arrays whose last axis may be that of worlds: selections, sums, products with masks, and loops.

Each runs in few kernels and has a transpose that does, where `jnp` and `lax` would have neither.
"""

from .linear.columns import take as take
from .linear.mask_products import dot_with_mask as dot_with_mask
from .linear.sums import largest_over_first as largest_over_first
from .linear.sums import repeat as repeat
from .linear.sums import sum_over_axis as sum_over_axis
from .linear.sums import sum_over_first as sum_over_first
from .targets.manual_axes import repeat_turns as repeat_turns
from .targets.manual_axes import scan as scan
from .worlds.chunks import compiled_apart as compiled_apart
from .worlds.chunks import stored as stored
from .worlds.loops import one_by_one as one_by_one
