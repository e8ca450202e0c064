"""Derivatives of inverse dynamics in closed form: tangent, cotangent and Jacobian."""
