"""What moves points of contact: products with their Jacobian."""
