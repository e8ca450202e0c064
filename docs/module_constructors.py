"""An extension of griffe: the constructors of equinox modules, whose arguments are their fields.

Griffe knows dataclasses by their decorator. A subclass of `eqx.Module` is one without it, and so is each class that
derives from such a class.
"""

from typing import Any

import griffe


class ModuleConstructors(griffe.Extension):
    """Gives each equinox module without a constructor of its own the one that its fields make."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """After all of a package is read."""
        for cls in classes_of(pkg):
            if "__init__" not in cls.members and is_module(cls):
                parameters = [griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)]
                parameters += fields_of(cls).values()
                cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*parameters)))


def classes_of(holder: Any) -> list[griffe.Class]:
    """All classes within a module or package."""
    found = []
    for member in list(holder.members.values()):
        if member.is_alias:
            continue
        if member.is_class:
            found.append(member)
        elif member.is_module:
            found += classes_of(member)
    return found


def bases_of(cls: griffe.Class) -> list[griffe.Class]:
    """Classes of mbjax that a class derives from."""
    return list(cls.resolved_bases)


def is_module(cls: griffe.Class) -> bool:
    """Whether a class is an equinox module."""
    return any(str(base).endswith("Module") for base in cls.bases) or any(map(is_module, bases_of(cls)))


def fields_of(cls: griffe.Class) -> dict[str, griffe.Parameter]:
    """The fields of a class and of those it derives from, as parameters."""
    found: dict[str, griffe.Parameter] = {}
    for base in bases_of(cls):
        found |= fields_of(base)
    for name, member in cls.members.items():
        if (
            member.is_alias
            or not member.is_attribute
            or member.annotation is None
            or "ClassVar" in str(member.annotation)
        ):
            continue
        default = default_of(member.value)
        kind = griffe.ParameterKind.positional_or_keyword
        found[name] = griffe.Parameter(name, annotation=member.annotation, kind=kind, default=default)
    return found


def default_of(value: Any) -> Any:
    """The default of a field: what `eqx.field(default=…)` says, or the value itself."""
    if isinstance(value, griffe.ExprCall) and str(value.function).endswith("field"):
        words = {word.name: word.value for word in value.arguments if isinstance(word, griffe.ExprKeyword)}
        return words.get("default", "…" if "default_factory" in words else None)
    return value
