"""Errors and warnings of mbjax; a message names the element, the value given, what was expected and a remedy."""


class ModelError(ValueError):
    """A model cannot be built, or cannot be used as asked."""


class ParseError(ModelError):
    """A model file cannot be read; the message of `ParseError(message, file=..., line=...)` starts with the place."""

    def __init__(self, message: str, *, file: str | None = None, line: int | None = None):
        self.file = file
        self.line = line
        place = "" if file is None else file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {message}" if place else message)


class UnsupportedError(ParseError):
    """A file asks for physics that mbjax does not simulate, or a model has physics that a format does not hold.

    `on_unsupported="warn"` goes on without it.
    """


class MissingPackageError(ParseError, ImportError):
    """An optional package is missing; the message says how to install it, and which file needs it, if one does."""


class ModelWarning(UserWarning):
    """Something in a model file or in a build was repaired, defaulted or left out; the report lists it, too."""
