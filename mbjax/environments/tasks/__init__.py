"""Tasks that people know, one file a task."""

from .cart_pole import CartPoleSwingUp as CartPoleSwingUp
