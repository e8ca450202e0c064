"""What a run measured, and a table of it."""

import dataclasses

from .measure import significant
from .peers import PEERS
from .robots import ROBOTS


@dataclasses.dataclass(frozen=True)
class Table:
    """Plain text cells; the first column names the implementation."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclasses.dataclass
class Results:
    """Everything one run measured. A record holds its peer, dtype and threads besides what the process printed."""

    machine: dict[str, str]
    robots: tuple[str, ...]
    records: list[dict]
    rollout: list[dict]
    loads: dict[str, str]
    command: str

    def find(self, **wanted: object) -> dict | None:
        """The first record with these values."""
        return next((r for r in self.records if all(r.get(key) == value for key, value in wanted.items())), None)

    def median(self, peer: str, dtype: str, case: str, robot: str, threads: int) -> float | None:
        record = self.find(peer=peer, dtype=dtype, case=case, robot=robot, threads=threads, status="measured")
        return None if record is None else record["median"]

    @property
    def peers(self) -> list[str]:
        present = {r["peer"] for r in self.records}
        return [name for name in PEERS if name in present]


def thread_counts(results: Results, case: str) -> list[int]:
    jax_records = [r for r in results.records if r.get("case") == case and PEERS[r["peer"]].uses_jax]
    return sorted({r["threads"] for r in jax_records}) or [0]


def threads_title(threads: int) -> str:
    return "XLA's defaults" if threads == 0 else "one thread"


def titles(results: Results) -> tuple[str, ...]:
    return tuple(ROBOTS[name].title for name in results.robots)


def verdict(value: float, target: float, unit: str) -> str:
    return f"{'met' if value <= target else 'MISSED'}: {significant(value)} {unit}"
