"""Rules of a warp's kernel for operations of each number by itself: arithmetic, comparisons, sine and cosine."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from .gpu_kernels import NotInKernelError
from .warp_arrays import (
    Constant,
    Rows,
    WarpArray,
    in_registers,
    kind_of,
    num_rows,
    pick,
    positions_of,
    row_length,
    select,
)
from .warp_program import rule
from .warp_text import LANES, WIDTHS, WarpText, literal

FLOATS = {"f32", "f64"}


def by_numbers(
    text: WarpText, shape: tuple[int, ...], kind: str, inputs: Sequence[WarpArray], instruction: Callable
) -> Rows:
    """Computes each number of the result from those at the same position of the inputs."""
    inputs = [x if x.shape in ((), shape) else pick(x, np.broadcast_to(positions_of(x.shape), shape)) for x in inputs]
    inputs = [in_registers(text, x) for x in inputs]
    cached: dict = {}  # equal rows, as of what was repeated, are computed once
    rows = []
    for row in range(num_rows(shape)):
        parts = []
        for k in range(math.ceil(row_length(shape) / LANES)):
            given = tuple(part(x, row, k) for x in inputs)
            if given not in cached:
                cached[given] = instruction(*given)
            parts.append(cached[given])
        rows.append(parts)
    return Rows(shape, kind, rows)


def part(x: Rows, row: int, k: int) -> str:
    """A register of x; of a single number, that of all."""
    return x.rows[0][0] if x.shape == () else x.rows[row][k]


def arithmetic(operation: str) -> Callable:
    """The rule of an operation of two numbers that is one instruction."""

    def apply(text: WarpText, equation: Any, inputs: list, **_: Any) -> Rows:
        aval = equation.outvars[0].aval
        kind = kind_of(aval.dtype)
        name = operation + (".lo" if operation == "mul" and kind not in FLOATS else "")
        if kind == "pred":
            name = {"add": "or", "mul": "and", "max": "or", "min": "and"}[operation]
        return by_numbers(text, aval.shape, kind, inputs, lambda x, y: text.compute(f"{name}.{kind}", kind, x, y))

    return apply


for _name in ("add", "sub", "mul"):
    rule(_name)(arithmetic(_name))
rule("add_any")(arithmetic("add"))


@rule("max", "min")
def extreme(text: WarpText, equation: Any, inputs: list, **_: Any) -> Rows:
    """The larger or smaller; NaN if either is NaN, as in JAX."""
    name, aval = equation.primitive.name, equation.outvars[0].aval
    kind = kind_of(aval.dtype)

    def instruction(x: str, y: str) -> str:
        if kind == "f32":
            return text.compute(f"{name}.NaN.f32", kind, x, y)
        if kind == "f64":
            found = text.compute(f"{name}.f64", kind, x, y)
            both = text.compute("add.f64", kind, x, y)
            return text.compute("selp.f64", kind, both, found, text.compute("setp.nan.f64", "pred", x, y))
        return text.compute(f"{name}.{kind}", kind, x, y)

    return by_numbers(text, aval.shape, kind, inputs, instruction)


def of_one(operation: Callable[[WarpText, str, str], str]) -> Callable:
    """The rule of an operation of one number."""

    def apply(text: WarpText, equation: Any, inputs: list, **_: Any) -> Rows:
        aval = equation.outvars[0].aval
        kind = kind_of(aval.dtype)
        return by_numbers(text, aval.shape, kind, inputs, lambda x: operation(text, kind, x))

    return apply


rule("neg")(of_one(lambda text, kind, x: text.compute(f"neg.{kind}", kind, x)))
rule("abs")(of_one(lambda text, kind, x: text.compute(f"abs.{kind}", kind, x)))
rule("sqrt")(of_one(lambda text, kind, x: text.compute(f"sqrt.rn.{kind}", kind, x)))
rule("floor")(of_one(lambda text, kind, x: text.compute(f"cvt.rmi.{kind}.{kind}", kind, x)))
rule("square")(of_one(lambda text, kind, x: text.compute(f"mul.{kind}", kind, x, x)))


@rule("round")
def rounded(text: WarpText, equation: Any, inputs: list, *, rounding_method: Any, **_: Any) -> Rows:
    """To the nearest whole number; halves to the even one, or away from zero."""
    to_even = rounding_method == jax.lax.RoundingMethod.TO_NEAREST_EVEN

    def instruction(text: WarpText, kind: str, x: str) -> str:
        if to_even:
            return text.compute(f"cvt.rni.{kind}.{kind}", kind, x)
        size = text.compute(f"abs.{kind}", kind, x)
        found = text.compute(f"cvt.rzi.{kind}.{kind}", kind, size)
        rest = text.compute(f"sub.{kind}", kind, size, found)
        more = text.compute(f"setp.ge.{kind}", "pred", rest, number(0.5, kind))
        found = text.compute(f"selp.{kind}", kind, text.compute(f"add.{kind}", kind, found, one(kind)), found, more)
        return text.compute(f"copysign.{kind}", kind, x, found)

    return of_one(instruction)(text, equation, inputs)


@rule("sign")
def sign(text: WarpText, equation: Any, inputs: list, **_: Any) -> Rows:
    """1 or -1; zeros and NaN stay."""

    def instruction(text: WarpText, kind: str, x: str) -> str:
        if kind not in FLOATS:
            raise NotInKernelError("sign")
        signed = text.compute(f"copysign.{kind}", kind, as_register(text, kind, x), one(kind))
        other = text.compute(f"setp.gt.{kind}", "pred", text.compute(f"abs.{kind}", kind, x), zero(kind))
        return text.compute(f"selp.{kind}", kind, signed, as_register(text, kind, x), other)

    return of_one(instruction)(text, equation, inputs)


# Half of pi in three parts, of which the first two have 33 bits; polynomials of sine and cosine on [-pi/4, pi/4], as in
# Sun's fdlibm (f64) and Moshier's Cephes (f32).
HALF_PI = (1.57079632673412561417, 6.07710050630396597660e-11, 2.02226624871116645580e-21)
OF_SINE = {
    "f32": (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4),
    "f64": (
        -1.66666666666666324348e-01, 8.33333333332248946124e-03, -1.98412698298579493134e-04,
        2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10,
    ),
}  # fmt: skip
OF_COSINE = {
    "f32": (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5),
    "f64": (
        4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05,
        -2.75573143513906633035e-07, 2.08757232129817482790e-09, -1.13596475577881948265e-11,
    ),
}  # fmt: skip


@rule("sin", "cos")
def sine(text: WarpText, equation: Any, inputs: list, **_: Any) -> Rows:
    """Sine or cosine, to rounding for angles of up to a million radians."""
    turns = 0 if equation.primitive.name == "sin" else 1

    def instruction(text: WarpText, kind: str, x: str) -> str:
        wide = x if kind == "f64" else text.compute("cvt.f64.f32", "f64", as_register(text, kind, x))
        count = text.compute("mul.f64", "f64", wide, number(2.0 / math.pi, "f64"))
        count = text.compute("cvt.rni.f64.f64", "f64", count)
        rest = wide
        for part_ in HALF_PI:
            rest = text.compute("fma.rn.f64", "f64", count, number(-part_, "f64"), rest)
        quadrant = text.compute("cvt.rni.s32.f64", "s32", count)
        quadrant = text.compute("add.s32", "s32", quadrant, str(turns))
        rest = rest if kind == "f64" else text.compute("cvt.rn.f32.f64", "f32", rest)
        square = text.compute(f"mul.{kind}", kind, rest, rest)
        odd = text.compute(f"mul.{kind}", kind, square, polynomial(text, kind, square, OF_SINE[kind]))
        odd = text.compute(f"fma.rn.{kind}", kind, odd, rest, rest)
        even = text.compute(f"mul.{kind}", kind, square, polynomial(text, kind, square, OF_COSINE[kind]))
        even = text.compute(f"sub.{kind}", kind, even, number(0.5, kind))
        even = text.compute(f"fma.rn.{kind}", kind, even, square, one(kind))
        is_even = text.compute("setp.ne.s32", "pred", text.compute("and.b32", "s32", quadrant, "1"), "0")
        is_negative = text.compute("setp.ne.s32", "pred", text.compute("and.b32", "s32", quadrant, "2"), "0")
        found = text.compute(f"selp.{kind}", kind, even, odd, is_even)
        return text.compute(f"selp.{kind}", kind, text.compute(f"neg.{kind}", kind, found), found, is_negative)

    return of_one(instruction)(text, equation, inputs)


def polynomial(text: WarpText, kind: str, x: str, coefficients: Sequence[float]) -> str:
    """A polynomial by Horner's rule, lowest coefficient first."""
    found = number(coefficients[-1], kind)
    for c in coefficients[-2::-1]:
        found = text.compute(f"fma.rn.{kind}", kind, as_register(text, kind, found), x, number(c, kind))
    return found


def number(value: float, kind: str) -> str:
    """A number as PTX writes it."""
    return literal(value, kind)


@rule("rsqrt")
def reciprocal_root(text: WarpText, equation: Any, inputs: list, **_: Any) -> Rows:
    """1 / sqrt(x), rounded twice."""
    aval = equation.outvars[0].aval
    kind = kind_of(aval.dtype)

    def instruction(x: str) -> str:
        return text.compute(f"div.rn.{kind}", kind, one(kind), text.compute(f"sqrt.rn.{kind}", kind, x))

    return by_numbers(text, aval.shape, kind, inputs, instruction)


def one(kind: str) -> str:
    """The number one."""
    return {"f32": "0f3F800000", "f64": "0d3FF0000000000000"}.get(kind, "1")


@rule("div")
def quotient(text: WarpText, equation: Any, inputs: list, **_: Any) -> Rows:
    """x / y, rounded to the nearest."""
    aval = equation.outvars[0].aval
    kind = kind_of(aval.dtype)
    name = f"div.rn.{kind}" if kind in FLOATS else f"div.{kind}"
    return by_numbers(text, aval.shape, kind, inputs, lambda x, y: text.compute(name, kind, x, y))


@rule("integer_pow")
def power(text: WarpText, equation: Any, inputs: list, *, y: int, **_: Any) -> Rows:
    """x ** y by products."""
    aval = equation.outvars[0].aval
    kind = kind_of(aval.dtype)

    def raised(x: str, count: int) -> str:
        if count == 1:
            return x
        half = raised(x, count // 2)
        found = text.compute(f"mul.{kind}", kind, half, half)
        return text.compute(f"mul.{kind}", kind, found, x) if count % 2 else found

    def instruction(x: str) -> str:
        if y == 0:
            return one(kind)
        found = raised(x, abs(y))
        return found if y > 0 else text.compute(f"div.rn.{kind}", kind, one(kind), found)

    return by_numbers(text, aval.shape, kind, inputs, instruction)


@rule("lt", "le", "gt", "ge", "eq", "ne")
def comparison(text: WarpText, equation: Any, inputs: list, **_: Any) -> Rows:
    """Comparisons; any with NaN is false, but that it differs."""
    kind, name = inputs[0].kind, equation.primitive.name
    name = "neu" if name == "ne" and kind in FLOATS else name

    def instruction(x: str, y: str) -> str:
        if kind == "pred":
            differ = text.compute("xor.pred", "pred", x, y)
            return differ if name == "ne" else text.compute("not.pred", "pred", differ)
        x = x if x.startswith("%") else text.compute(f"mov.{kind}", kind, x)
        return text.compute(f"setp.{name}.{kind}", "pred", x, y)

    return by_numbers(text, equation.outvars[0].aval.shape, "pred", inputs, instruction)


@rule("and", "or", "xor")
def logic(text: WarpText, equation: Any, inputs: list, **_: Any) -> Rows:
    """Logic of truths, or of bits."""
    name, kind = equation.primitive.name, inputs[0].kind
    of = kind if kind == "pred" else f"b{8 * WIDTHS[kind]}"
    shape = equation.outvars[0].aval.shape
    return by_numbers(text, shape, kind, inputs, lambda x, y: text.compute(f"{name}.{of}", kind, x, y))


@rule("not")
def negation(text: WarpText, equation: Any, inputs: list, **_: Any) -> Rows:
    """The opposite of truths."""
    if inputs[0].kind != "pred":
        raise NotInKernelError("not")
    shape = equation.outvars[0].aval.shape
    return by_numbers(text, shape, "pred", inputs, lambda x: text.compute("not.pred", "pred", x))


@rule("is_finite")
def finite(text: WarpText, equation: Any, inputs: list, **_: Any) -> Rows:
    """Whether numbers are neither NaN nor infinite."""
    kind = inputs[0].kind
    infinite = {"f32": "0f7F800000", "f64": "0d7FF0000000000000"}[kind]

    def instruction(x: str) -> str:
        return text.compute(f"setp.lt.{kind}", "pred", text.compute(f"abs.{kind}", kind, x), infinite)

    return by_numbers(text, equation.outvars[0].aval.shape, "pred", inputs, instruction)


@rule("select_n")
def selection(text: WarpText, equation: Any, inputs: list, **_: Any) -> WarpArray:
    """The second where a truth holds, else the first."""
    which, *cases = inputs
    if len(cases) != 2 or which.kind != "pred":
        raise NotInKernelError("select_n")
    aval = equation.outvars[0].aval
    kind = kind_of(aval.dtype)

    def instruction(where: str, x: str, y: str) -> str:
        return select(text, kind, where, as_register(text, kind, y), x)

    return by_numbers(text, aval.shape, kind, [which, *cases], instruction)


def as_register(text: WarpText, kind: str, x: str) -> str:
    """A number in a register, where an instruction takes no literal."""
    return x if x.startswith("%") else text.compute(f"mov.{kind}", kind, x)


@rule("convert_element_type")
def conversion(text: WarpText, equation: Any, inputs: list, **_: Any) -> WarpArray:
    """Numbers of another type."""
    aval, old = equation.outvars[0].aval, inputs[0].kind
    new = kind_of(aval.dtype)
    if isinstance(inputs[0], Constant):
        return Constant(inputs[0].array.astype(aval.dtype))
    if new == old:
        return inputs[0]

    def instruction(x: str) -> str:
        if new == "pred":
            test = "neu" if old in FLOATS else "ne"
            return text.compute(f"setp.{test}.{old}", "pred", x, "0" if old not in FLOATS else zero(old))
        if old == "pred":
            return text.compute(f"selp.{new}", new, one(new), zero(new), x)
        rounding = ".rzi" if old in FLOATS and new not in FLOATS else ".rn" if (new in FLOATS) else ""
        if old == "f32" and new == "f64":
            rounding = ""
        return text.compute(f"cvt{rounding}.{new}.{old}", new, x)

    return by_numbers(text, aval.shape, new, inputs, instruction)


def zero(kind: str) -> str:
    """The number zero."""
    return {"f32": "0f00000000", "f64": "0d0000000000000000"}.get(kind, "0")


@rule("clamp")
def clamp(text: WarpText, equation: Any, inputs: list, **_: Any) -> Rows:
    """Numbers between bounds."""
    low, x, high = inputs
    aval = equation.outvars[0].aval
    kind = kind_of(aval.dtype)

    def instruction(a: str, b: str, c: str) -> str:
        return text.compute(f"min.{kind}", kind, text.compute(f"max.{kind}", kind, a, b), c)

    return by_numbers(text, aval.shape, kind, [low, x, high], instruction)
