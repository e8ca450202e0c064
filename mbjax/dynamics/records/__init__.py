"""What the algorithms of dynamics hand to one another: motion, inertias, and rows one a direction."""
