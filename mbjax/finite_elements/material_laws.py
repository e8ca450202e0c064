"""Elastic materials: energy density, stress and stiffness as functions of the deformation gradient F.

Each law has the energy density Ψ(F) per reference volume, the first Piola stress P = dΨ/dF, and the derivative of P
along a change of F, in closed form, with Lamé's constants mu and lambda. Matrices are (*m, 3, 3) for m elements.
Sources: Sifakis and Barbič 2012, "FEM simulation of 3D deformable solids"; Smith, de Goes and Kim 2019, "Analytic
eigensystems for isotropic distortion energies"; Drake's `fem`.
"""

import abc
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .rotation_factor import cofactors, rotation_change, rotation_factor, transposed

ElementMatrix = Float[Array, "*m 3 3"]


class LameConstants(NamedTuple):
    """Shear modulus mu and lambda, in Pa."""

    mu: Float[Array, "*m"]
    lam: Float[Array, "*m"]


class PrincipalStiffness(NamedTuple):
    """dP/dF where F = diag(sigma), which couples few entries of F.

    `stretch` is d²Ψ/dσ². In the plane of axes i and j, with k the third axis, `twist[k]` is the eigenvalue of the
    antisymmetric change, (ψ_i + ψ_j) / (σ_i + σ_j), and `flip[k]` that of the symmetric one, (ψ_i - ψ_j) / (σ_i - σ_j),
    with ψ = dΨ/dσ.
    """

    stretch: Float[Array, "*m 3 3"]
    twist: Float[Array, "*m 3"]
    flip: Float[Array, "*m 3"]


def lame_constants(youngs_modulus: Array, poissons_ratio: Array) -> LameConstants:
    """Lamé's constants of Young's modulus E and Poisson's ratio ν."""
    E, nu = youngs_modulus, poissons_ratio
    return LameConstants(E / (2.0 * (1.0 + nu)), E * nu / ((1.0 + nu) * (1.0 - 2.0 * nu)))


class AbstractMaterialLaw(abc.ABC):
    """A material; R is the rotation of the step's start, which only the linear corotated law reads.

    `is_linear` says that P is linear in F, so that one solve finds the solution of a step.
    """

    is_linear: bool
    reads_rotation: bool = False

    @abc.abstractmethod
    def energy_density(self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> Float[Array, "*m"]:
        """Ψ(F), in J/m³ of reference volume."""

    @abc.abstractmethod
    def stress(self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> ElementMatrix:
        """First Piola stress P(F), in Pa."""

    @abc.abstractmethod
    def stress_change(
        self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants, dF: ElementMatrix
    ) -> ElementMatrix:
        """dP along dF, in Pa: the stiffness dP/dF times dF."""


class AbstractSmallStrainLaw(AbstractMaterialLaw):
    """Ψ = mu |ε|² + lambda/2 tr(ε)², with the strain ε = sym(RᵀF) - 1: linear in F, and convex."""

    is_linear = True

    def energy_density(self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> Float[Array, "*m"]:
        e = symmetric_part(transposed(R) @ F) - identity(F)
        return lame.mu * squared_norm(e) + 0.5 * lame.lam * trace(e) ** 2

    def stress(self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> ElementMatrix:
        return self.of_strain(symmetric_part(transposed(R) @ F) - identity(F), R, lame)

    def stress_change(
        self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants, dF: ElementMatrix
    ) -> ElementMatrix:
        return self.of_strain(symmetric_part(transposed(R) @ dF), R, lame)

    def of_strain(self, e: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> ElementMatrix:
        """R (2 mu ε + lambda tr ε)."""
        return R @ (2.0 * wide(lame.mu) * e + wide(lame.lam * trace(e)) * identity(e))


class Linear(AbstractSmallStrainLaw):
    """Small strain and small rotation."""


class LinearCorotated(AbstractSmallStrainLaw):
    """Small strain beside the rotation of the step's start (Müller and Gross 2004, "Interactive virtual materials")."""

    reads_rotation = True


class AbstractIsotropicLaw(AbstractMaterialLaw):
    """A law whose energy depends on the singular values of F alone."""

    is_linear = False

    @abc.abstractmethod
    def principal_stiffness(self, sigma: Float[Array, "*m 3"], lame: LameConstants) -> PrincipalStiffness:
        """dP/dF in the axes of the singular vectors."""


class Corotated(AbstractIsotropicLaw):
    """Ψ = mu |F - R|² + lambda/2 (J - 1)² with J = det F (Stomakhin et al. 2012)."""

    def energy_density(self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> Float[Array, "*m"]:
        return lame.mu * squared_norm(F - rotation_factor(F)) + 0.5 * lame.lam * volume_change(F) ** 2

    def stress(self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> ElementMatrix:
        return 2.0 * wide(lame.mu) * (F - rotation_factor(F)) + wide(lame.lam * volume_change(F)) * cofactors(F)

    def stress_change(
        self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants, dF: ElementMatrix
    ) -> ElementMatrix:
        turned = rotation_change(F, rotation_factor(F), dF)
        return 2.0 * wide(lame.mu) * (dF - turned) + of_volume(F, dF, lame.lam, lame.lam * volume_change(F))

    def principal_stiffness(self, sigma: Float[Array, "*m 3"], lame: LameConstants) -> PrincipalStiffness:
        mu, pressure = lame.mu[..., None], lame.lam * (jnp.prod(sigma, axis=-1) - 1.0)
        total = sum_of_others(sigma)
        total = jnp.where(jnp.abs(total) < 1e-30, 1e-30, total)
        stretch = 2.0 * wide(lame.mu) * identity(sigma) + stretch_of_volume(sigma, lame.lam, pressure)
        of_volume = pressure[..., None] * sigma
        return PrincipalStiffness(stretch, 2.0 * mu * (1.0 - 2.0 / total) + of_volume, 2.0 * mu - of_volume)


class NeoHookean(AbstractIsotropicLaw):
    """Ψ = mu/2 (|F|² - 3) - mu (J - 1) + lambda/2 (J - 1)² (Kim and Eberle 2020, eq. 6.9, without their constant).

    It is Drake's. At small strain it has lambda - mu in the place of lambda, and so another Young's modulus and
    Poisson's ratio than were given; where ν ≤ 1/8, rest is not stable.
    """

    def energy_density(self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> Float[Array, "*m"]:
        change = volume_change(F)
        return 0.5 * lame.mu * (squared_norm(F) - 3.0) - lame.mu * change + 0.5 * lame.lam * change**2

    def stress(self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> ElementMatrix:
        return wide(lame.mu) * F + wide(lame.lam * volume_change(F) - lame.mu) * cofactors(F)

    def stress_change(
        self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants, dF: ElementMatrix
    ) -> ElementMatrix:
        return wide(lame.mu) * dF + of_volume(F, dF, lame.lam, lame.lam * volume_change(F) - lame.mu)

    def principal_stiffness(self, sigma: Float[Array, "*m 3"], lame: LameConstants) -> PrincipalStiffness:
        mu, pressure = lame.mu[..., None], lame.lam * (jnp.prod(sigma, axis=-1) - 1.0) - lame.mu
        stretch = wide(lame.mu) * identity(sigma) + stretch_of_volume(sigma, lame.lam, pressure)
        of_volume = pressure[..., None] * sigma
        return PrincipalStiffness(stretch, mu + of_volume, mu - of_volume)


class StableNeoHookean(NeoHookean):
    """The same with lambda + mu: small strains have the given E and ν (Smith, de Goes and Kim 2018, sec. 3.4)."""

    def energy_density(self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> Float[Array, "*m"]:
        return super().energy_density(F, R, matched_constants(lame))

    def stress(self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> ElementMatrix:
        return super().stress(F, R, matched_constants(lame))

    def stress_change(
        self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants, dF: ElementMatrix
    ) -> ElementMatrix:
        return super().stress_change(F, R, matched_constants(lame), dF)

    def principal_stiffness(self, sigma: Float[Array, "*m 3"], lame: LameConstants) -> PrincipalStiffness:
        return super().principal_stiffness(sigma, matched_constants(lame))


def matched_constants(lame: LameConstants) -> LameConstants:
    """Constants with which the neo-Hookean law has the given ones at small strain."""
    return LameConstants(lame.mu, lame.lam + lame.mu)


class RotatingSmallStrain(AbstractIsotropicLaw):
    """Ψ = mu |S - 1|² + lambda/2 tr(S - 1)² with F = R S: the linear corotated law where R is that of F itself.

    It is what that law is at rest, when a step's start and end are the same.
    """

    def energy_density(self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> Float[Array, "*m"]:
        R = rotation_factor(F)
        return lame.mu * squared_norm(F - R) + 0.5 * lame.lam * (trace(transposed(R) @ F) - 3.0) ** 2

    def stress(self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants) -> ElementMatrix:
        R = rotation_factor(F)
        return 2.0 * wide(lame.mu) * (F - R) + wide(lame.lam * (trace(transposed(R) @ F) - 3.0)) * R

    def stress_change(
        self, F: ElementMatrix, R: ElementMatrix, lame: LameConstants, dF: ElementMatrix
    ) -> ElementMatrix:
        R = rotation_factor(F)
        turned = rotation_change(F, R, dF)
        of_trace = wide(trace(transposed(R) @ dF)) * R + wide(trace(transposed(R) @ F) - 3.0) * turned
        return 2.0 * wide(lame.mu) * (dF - turned) + wide(lame.lam) * of_trace

    def principal_stiffness(self, sigma: Float[Array, "*m 3"], lame: LameConstants) -> PrincipalStiffness:
        mu, lam, total = lame.mu[..., None], lame.lam[..., None], sum_of_others(sigma)
        total = jnp.where(jnp.abs(total) < 1e-30, 1e-30, total)
        stretch = 2.0 * wide(lame.mu) * identity(sigma) + wide(lame.lam)
        pressure = 2.0 * lam * (jnp.sum(sigma, axis=-1, keepdims=True) - 3.0) / total
        return PrincipalStiffness(stretch, 2.0 * mu * (1.0 - 2.0 / total) + pressure, 2.0 * mu + 0.0 * total)


MODELS = ("linear", "linear_corotated", "corotated", "neo_hookean", "stable_neo_hookean")
AT_REST = {"linear_corotated": "rotating_small_strain"}  # the law of a body at rest, where it has another one
LAWS: dict[str, AbstractMaterialLaw] = {
    "linear": Linear(),
    "linear_corotated": LinearCorotated(),
    "corotated": Corotated(),
    "neo_hookean": NeoHookean(),
    "stable_neo_hookean": StableNeoHookean(),
    "rotating_small_strain": RotatingSmallStrain(),
}


def identity(like: Array) -> Float[Array, "3 3"]:
    return jnp.eye(3, dtype=like.dtype)


def wide(x: Float[Array, "*m"]) -> Float[Array, "*m 1 1"]:
    """Numbers of elements, to be multiplied by matrices."""
    return x[..., None, None]


def symmetric_part(A: ElementMatrix) -> ElementMatrix:
    return 0.5 * (A + transposed(A))


def trace(A: ElementMatrix) -> Float[Array, "*m"]:
    return jnp.trace(A, axis1=-2, axis2=-1)


def squared_norm(A: ElementMatrix) -> Float[Array, "*m"]:
    """Sum of the squares of all entries."""
    return jnp.sum(A * A, axis=(-2, -1))


def volume_change(F: ElementMatrix) -> Float[Array, "*m"]:
    """J - 1 with J = det F."""
    return jnp.sum(F[..., 0, :] * jnp.cross(F[..., 1, :], F[..., 2, :]), axis=-1) - 1.0


def cofactors_change(F: ElementMatrix, dF: ElementMatrix) -> ElementMatrix:
    """Change of the cofactors of F along dF; they are bilinear in the rows of F."""
    rows = ((1, 2), (2, 0), (0, 1))
    parts = [jnp.cross(dF[..., i, :], F[..., j, :]) + jnp.cross(F[..., i, :], dF[..., j, :]) for i, j in rows]
    return jnp.stack(parts, axis=-2)


def of_volume(F: ElementMatrix, dF: ElementMatrix, lam: Array, pressure: Array) -> ElementMatrix:
    """Change along dF of f(J) cof(F), where f is `pressure` and its derivative `lam`."""
    C = cofactors(F)
    return wide(lam * jnp.sum(C * dF, axis=(-2, -1))) * C + wide(pressure) * cofactors_change(F, dF)


def sum_of_others(sigma: Float[Array, "*m 3"]) -> Float[Array, "*m 3"]:
    """For each of three numbers, the sum of the other two."""
    return jnp.sum(sigma, axis=-1, keepdims=True) - sigma


def stretch_of_volume(sigma: Float[Array, "*m 3"], lam: Array, pressure: Array) -> ElementMatrix:
    """Second derivative by σ of a function of J = σ0 σ1 σ2 with the derivatives `pressure` and `lam`."""
    s0, s1, s2 = sigma[..., 0], sigma[..., 1], sigma[..., 2]
    others, zero = jnp.stack([s1 * s2, s0 * s2, s0 * s1], axis=-1), jnp.zeros_like(s0)
    rows = [[zero, s2, s1], [s2, zero, s0], [s1, s0, zero]]
    of_J = jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)
    return wide(lam) * others[..., :, None] * others[..., None, :] + wide(pressure) * of_J


def stiffness_of(
    law: AbstractMaterialLaw, F: ElementMatrix, R: ElementMatrix, lame: LameConstants
) -> Float[Array, "*m 9 9"]:
    """dP/dF; rows and columns go through matrices row by row."""

    def along(unit: Array) -> Float[Array, "*m 9"]:
        dP = law.stress_change(F, R, lame, jnp.broadcast_to(unit, F.shape))
        return dP.reshape(*F.shape[:-2], 9)

    return jax.vmap(along, out_axes=-1)(jnp.eye(9, dtype=F.dtype).reshape(9, 3, 3))
