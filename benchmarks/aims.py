"""What forward dynamics is to reach, beside what a run measured."""

from collections.abc import Iterator

from .results import Results, Table, thread_counts, threads_title, titles, verdict

BATCH = "batch4096:closed"
LOOP_US = {"panda": 1.5, "a1": 4.0, "g1": 8.0}
CALL_US = {"panda": 20.0, "a1": 30.0, "g1": 45.0}
COMPILE_S = {"fd": 1.5, "vjp": 4.0}
NAMES = {"fd": "forward dynamics", "vjp": "its vjp"}
RATIOS = (  # question, other (peer, question) it is measured by, at most this many times as long
    ("fd", ("frax", "fd"), 1 / 4),
    ("fd", ("mjx", "fd"), 1 / 5),
    ("fd", ("pinocchio", "fd"), 1.0),
    ("vjp", ("mbjax", "fd"), 3.0),
    ("vjp", ("frax", "vjp"), 1 / 5),
    ("vjp", ("mjx", "vjp"), 1 / 30),
)

Row = tuple[str, dict[str, float], dict[str, float], str]  # what, its limit and value per robot, unit


def aims_table(results: Results) -> Table:
    """An aim a row; what a run did not measure is left out."""
    rows = []
    for what, limits, values, unit in (*ratios(results), *times(results), *compile_times(results)):
        if values:
            cells = [verdict(values[r], limits[r], unit) if r in values else "–" for r in results.robots]
            rows.append((what, *cells))
    note = "Pinocchio: C++ in float64 on one core, whatever mbjax runs on."
    return Table("Aims", ("aim", *titles(results)), tuple(rows), note)


def ratios(results: Results) -> Iterator[Row]:
    """Of times of a batch."""
    for threads in thread_counts(results, f"fd:{BATCH}"):
        for dtype in ("f32", "f64"):
            for question, (peer, other), limit in RATIOS:
                is_c = peer == "pinocchio"
                values = {}
                for robot in results.robots:
                    ours = results.median("mbjax", dtype, f"{question}:{BATCH}", robot, threads)
                    theirs = results.median(
                        peer, "f64" if is_c else dtype, f"{other}:{BATCH}", robot, 0 if is_c else threads
                    )
                    if ours is not None and theirs is not None:
                        values[robot] = ours / theirs
                of = "forward dynamics" if peer == "mbjax" else peer
                where = f"batch of 4096, {dtype}, {threads_title(threads)}"
                what = f"{NAMES[question]}, {where}: ≤ {limit:.2g} of {of}"
                yield what, dict.fromkeys(results.robots, limit), values, "×"


def times(results: Results) -> Iterator[Row]:
    """Of one world, in float64."""
    for mode, limits in (("loop1000", LOOP_US), ("single", CALL_US)):
        values = {r: results.median("mbjax", "f64", f"fd:{mode}:closed", r, 0) for r in results.robots if r in limits}
        where = {"loop1000": "a step in an on-device loop", "single": "one jitted call from Python"}[mode]
        what = f"forward dynamics, one world, f64, {where}: ≤ {' / '.join(f'{x:g}' for x in limits.values())} µs"
        yield what, limits, {r: 1e6 * x for r, x in values.items() if x is not None}, "µs"


def compile_times(results: Results) -> Iterator[Row]:
    """To trace, lower and compile, in float32 and all threads."""
    for question, limit in COMPILE_S.items():
        for mode in ("batch4096", "single"):
            keys = {"peer": "mbjax", "dtype": "f32", "case": f"{question}:{mode}:closed", "threads": 0}
            found = {r: results.find(robot=r, status="measured", **keys) for r in results.robots}
            values = {r: record["compile_total_s"] for r, record in found.items() if record is not None}
            what = f"{NAMES[question]}, {mode}, f32: trace + lower + compile ≤ {limit:g} s"
            yield what, dict.fromkeys(results.robots, limit), values, "s"
