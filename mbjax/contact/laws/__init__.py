"""Laws of contact: impulse and stiffness of a point from its velocity."""
