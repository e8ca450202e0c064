"""Linear operations with transposes of their own, and tangents in derivative rules written by hand."""
