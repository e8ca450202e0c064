"""Small dense and tree-sparse factorizations: rolled loops, worlds last, never differentiated."""

from .branch_factor import BranchFactor as BranchFactor
from .branch_factor import chain as chain
from .branch_factor import factor_branches as factor_branches
from .branch_factor import solve_branches as solve_branches
from .branch_factor import solve_inward as solve_inward
from .branch_factor import solve_outward as solve_outward
from .branch_inverse import inverse_of_branches as inverse_of_branches
from .orthogonal_rows import OrthogonalRows as OrthogonalRows
from .orthogonal_rows import coefficients as coefficients
from .orthogonal_rows import factor_rows as factor_rows
from .orthogonal_rows import point_with_products as point_with_products
from .products import matrix_vector as matrix_vector
from .products import products_of_columns as products_of_columns
from .products import sum_of_outer as sum_of_outer
from .products import transposed_matrix_vector as transposed_matrix_vector
from .semidefinite import factor_semidefinite as factor_semidefinite
from .semidefinite import solve_semidefinite as solve_semidefinite
from .sums import repeat as repeat
from .sums import sum_over_axis as sum_over_axis
from .sums import sum_over_first as sum_over_first
from .thresholds import smallest_pivots as smallest_pivots
