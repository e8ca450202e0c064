"""The errors people meet: each names the element, what came, what was expected and the way out."""


class ModelError(ValueError):
    """A model cannot be built or used as asked."""


class ParseError(ModelError):
    """A model file cannot be read: `ParseError(message, file=..., line=...)` starts with the place."""

    def __init__(self, message: str, *, file: str | None = None, line: int | None = None):
        self.file = file
        self.line = line
        place = "" if file is None else file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {message}" if place else message)


class UnsupportedError(ParseError):
    """The file asks for physics that mbjax does not simulate; `on_unsupported="warn"` goes on without."""


class ModelWarning(UserWarning):
    """Something in a model file or in a build was repaired, defaulted or left out; it is listed too."""
