"""Describes the machine of a measurement: device, processor, versions, load."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
from collections.abc import Sequence

import jax


def describe_machine(packages: Sequence[str]) -> dict[str, str]:
    """Describes everything but the device, without starting JAX's backend, which may claim the memory of a GPU."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": processor_name(),
        "XLA_FLAGS of the run": os.environ.get("XLA_FLAGS", "") or "none",
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": ", ".join(f"{name} {version_of(name)}" for name in packages),
    }


def device_name() -> str:
    """The device that JAX computes on by default."""
    device = jax.devices()[0]
    kind = processor_name() if device.platform == "cpu" else device.device_kind
    return f"{device.platform}: {kind}"


def processor_name() -> str:
    """Model name of the processor, where the system gives it."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def version_of(package: str) -> str:
    """Version of an installed package, or "missing"."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def load_average() -> str:
    """Load averages over 1, 5 and 15 minutes."""
    return " ".join(f"{load:.2f}" for load in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"
