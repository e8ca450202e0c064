#!/usr/bin/env python3
"""Sets everything up in `.venv` and runs one thing; needs only Python 3.11 or newer.

python3 dev.py simulate [FILE …]    the `mbjax simulate` command, with what it draws with
python3 dev.py test                 the tests to trust an installation by, with the oracles they compare with
python3 dev.py test --trimmed       all tests on fewer cases, as CI does
python3 dev.py test --whole         all tests on all cases, once a week
python3 dev.py test PYTEST …        what pytest is told, as a folder of tests/: all cases, compiled as users compile
python3 dev.py docs                 the documentation, strictly, from `.venv-docs` into `site/`
python3 dev.py package              the wheel and the source distribution into `dist/`, tried outside of the checkout
python3 dev.py run COMMAND …        anything else in that environment
"""

import hashlib
import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = Path(os.environ.get("MBJAX_VENV", ROOT / ".venv"))
DOCS_ENVIRONMENT = Path(os.environ.get("MBJAX_DOCS_VENV", ROOT / ".venv-docs"))


def binaries(environment: Path) -> Path:
    """The folder of an environment's programs."""
    return environment / ("Scripts" if os.name == "nt" else "bin")


def install(extra: str, environment: Path = ENVIRONMENT, *, alone: bool = False) -> Path:
    """Creates the environment and installs mbjax with an extra, once for each state of pyproject.toml.

    `alone` leaves mbjax out: only what the extra names is installed. Returns the environment's Python.
    """
    python = binaries(environment) / ("python.exe" if os.name == "nt" else "python")
    stamp = environment / f"installed-{extra}"
    project = (ROOT / "pyproject.toml").read_text()
    state = hashlib.sha256(project.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == state:
        return python
    if not python.exists():
        print(f"creating {environment} …", flush=True)
        venv.create(environment, with_pip=True)
    print(f"installing mbjax[{extra}] …", flush=True)
    wanted = ["--editable", f"{ROOT}[{extra}]"]
    if alone:
        wanted = tomllib.loads(project)["project"]["optional-dependencies"][extra]
    # Modules are compiled when they are first imported: to compile all of 3 GB takes pip half of its time.
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-compile", *wanted], check=True)
    stamp.write_text(state)
    return python


def main() -> int:
    """Installs what the task needs, and runs it."""
    if sys.version_info < (3, 11):  # noqa: UP036  (an older Python may well run this file)
        print("mbjax needs Python 3.11 or newer; this is " + sys.version.split()[0], file=sys.stderr)
        return 2
    # Without files of compiled modules each process, and tests start many, compiles all that it imports: 6 s and more.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    task, arguments = (sys.argv[1] if len(sys.argv) > 1 else ""), sys.argv[2:]
    environment = ENVIRONMENT
    if task == "simulate":
        command = [install("viz"), "-m", "mbjax", "simulate", *arguments]
    elif task == "test":
        command = [install("test"), "-m", "pytest", "-n", "auto", "--dist", "worksteal", *(arguments or ["--quick"])]
    elif task == "docs":
        environment = DOCS_ENVIRONMENT
        command = [install("docs", environment, alone=True), "-m", "mkdocs", "build", "--strict"]
        command += ["--config-file", ROOT / "mkdocs.yml", *arguments]
    elif task == "package":
        command = [sys.executable, ROOT / ".ci" / "check_package.py"]
    elif task == "run" and arguments:
        install("test")
        command = [binaries(environment) / arguments[0], *arguments[1:]]
    else:
        print(__doc__, file=sys.stderr)
        return 2
    # As if the environment were activated: tools find its Python, and each other.
    path = f"{binaries(environment)}{os.pathsep}{os.environ.get('PATH', '')}"
    quiet = {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}  # the extra asks for mkdocs 1
    return subprocess.run(
        command, env={**quiet, **os.environ, "VIRTUAL_ENV": str(environment), "PATH": path}
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
