"""Newton–Euler inverse dynamics, as sums over the tree and as a recursion."""
