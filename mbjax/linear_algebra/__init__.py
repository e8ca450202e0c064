"""Small dense and tree-sparse factorizations: rolled loops, worlds last, never differentiated.

`library.py` has the general ones, by LAPACK, of one matrix at a time.
"""

from .branch_factor import BranchFactor as BranchFactor
from .branch_factor import Parents as Parents
from .branch_factor import chain as chain
from .branch_factor import factor_branches as factor_branches
from .branch_factor import factor_branch_rows as factor_branch_rows
from .branch_factor import own_places as own_places
from .branch_factor import paths as paths
from .branch_factor import branch_rows as branch_rows
from .branch_factor import pivots_of_rows as pivots_of_rows
from .branch_factor import solve_branches as solve_branches
from .branch_factor import solve_inward as solve_inward
from .branch_factor import solve_outward as solve_outward
from .branch_factor import solve_branch_rows as solve_branch_rows
from .branch_factor import trunk_of as trunk_of
from .branch_inverse import inverse_of_branches as inverse_of_branches
from .elimination import eliminate_columns as eliminate_columns
from .elimination import eliminate_positive_definite as eliminate_positive_definite
from .elimination import solve_each as solve_each
from .entries import with_entry as with_entry
from .library import TriangularFactors as TriangularFactors
from .library import cholesky as cholesky
from .library import cholesky_solve as cholesky_solve
from .library import eigenvalues as eigenvalues
from .library import factor_general as factor_general
from .library import log_determinant as log_determinant
from .library import orthogonal_factors as orthogonal_factors
from .library import pseudo_inverse as pseudo_inverse
from .library import singular_value_factors as singular_value_factors
from .library import singular_values as singular_values
from .library import solve as solve
from .library import solve_with_factors as solve_with_factors
from .library import solve_lower_triangular as solve_lower_triangular
from .library import solve_positive_definite as solve_positive_definite
from .library import solve_upper_triangular as solve_upper_triangular
from .library import triangular_factor as triangular_factor
from .orthogonal_rows import OrthogonalRows as OrthogonalRows
from .orthogonal_rows import coefficients as coefficients
from .orthogonal_rows import factor_rows as factor_rows
from .orthogonal_rows import point_with_products as point_with_products
from .products import matrix_vector as matrix_vector
from .products import product_by_rows as product_by_rows
from .products import products_of_columns as products_of_columns
from .products import sum_of_outer as sum_of_outer
from .products import transposed_matrix_vector as transposed_matrix_vector
from .semidefinite import factor_semidefinite as factor_semidefinite
from .semidefinite import solve_semidefinite as solve_semidefinite
from .small_factor import LARGEST as LARGEST
from .small_factor import SmallFactor as SmallFactor
from .small_factor import eliminate_small as eliminate_small
from .small_factor import factor_small as factor_small
from .small_factor import solve_small_inward as solve_small_inward
from .small_factor import solve_small_outward as solve_small_outward
from .thresholds import smallest_pivots as smallest_pivots
