#!/usr/bin/env python3
"""Sets everything up in `.venv` and runs one thing; needs only Python 3.11 or newer.

python3 dev.py simulate [FILE …]    the `mbjax simulate` command, with what it draws with
python3 dev.py test [PYTEST …]      the tests, with the oracles they compare with
python3 dev.py run COMMAND …        anything else in that environment
"""

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = Path(os.environ.get("MBJAX_VENV", ROOT / ".venv"))
BINARIES = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BINARIES / ("python.exe" if os.name == "nt" else "python")


def install(extra: str) -> None:
    """Creates the environment and installs mbjax with an extra, once for each state of pyproject.toml."""
    stamp = ENVIRONMENT / f"installed-{extra}"
    state = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == state:
        return
    if not PYTHON.exists():
        print(f"creating {ENVIRONMENT} …", flush=True)
        venv.create(ENVIRONMENT, with_pip=True)
    print(f"installing mbjax[{extra}] …", flush=True)
    subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--editable", f"{ROOT}[{extra}]"], check=True)
    stamp.write_text(state)


def main() -> int:
    """Installs what the task needs, and runs it."""
    if sys.version_info < (3, 11):  # noqa: UP036  (an older Python may well run this file)
        print("mbjax needs Python 3.11 or newer; this is " + sys.version.split()[0], file=sys.stderr)
        return 2
    task, arguments = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    if task == "simulate":
        install("viz")
        command = [PYTHON, "-m", "mbjax", "simulate", *arguments]
    elif task == "test":
        install("test")
        command = [PYTHON, "-m", "pytest", "-n", "auto", "--dist", "worksteal", *arguments]
    elif task == "run" and arguments:
        install("test")
        command = [BINARIES / arguments[0], *arguments[1:]]
    else:
        print(__doc__, file=sys.stderr)
        return 2
    # As if the environment were activated: tools find its Python, and each other.
    path = f"{BINARIES}{os.pathsep}{os.environ.get('PATH', '')}"
    return subprocess.run(command, env={**os.environ, "VIRTUAL_ENV": str(ENVIRONMENT), "PATH": path}).returncode


if __name__ == "__main__":
    sys.exit(main())
