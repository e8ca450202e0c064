"""Puts advice that names arguments of Python functions in the words of the command line."""

import re

OPTIONS = "base|mimic|actuators|on_unsupported"
# What messages say of Python's arguments, and what a command has instead.
WORDS = (
    (r'package_map=\{"(\w+)": "(\w+)"\}', r"--package \1=\2"),
    (
        r"columns=\{'([^']+)': …\}, to None if none acts there or it was not measured, which counts as zero",
        r"--column \1=NAME, or name the joints whose efforts were measured by --row",
    ),
    (r"columns=\{'([^']+)': …\}", r"--column \1=NAME"),
    (r"columns=\{'([^']+)': '([^']+)'\}", r"--column \1=\2"),
    (r"units=\{'([^']+)': '([^']+)'\}", r"--unit \1=\2"),
    (r" mbjax\.robots\(\) lists them\.", ""),
)
CHOICES = re.compile(rf"""\b({OPTIONS})=(["'])(\w+)\2""")


def in_options(text: str) -> str:
    """The text with options of commands in place of arguments of functions."""
    for said, meant in WORDS:
        text = re.sub(said, meant, text)
    return CHOICES.sub(lambda found: f"--{found[1].replace('_', '-')} {found[3]}", text)
