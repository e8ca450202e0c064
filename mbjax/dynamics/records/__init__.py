"""Records that the algorithms of dynamics share: motion, inertias, and rows, one for each direction."""
