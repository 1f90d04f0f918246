"""Curves: the cost of passes and recalls by the number of stored or due facts, and what forgetting keeps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from tests.benchmarks.figures import Answers, larger
from tests.benchmarks.scale import FACTS

mpl.use("Agg")
mpl.rcParams["svg.hashsalt"] = "ebb"  # equal figures give equal files

Curves = dict[str, dict[str, Sequence[float]]]
"""Lines by name, each with its runs by place on the axis."""

STORED, DUE = "facts stored", "facts due"
KEPT = ("evidence kept", "recall@10")


def draw(found: dict[str, Answers], folder: Path) -> list[Path]:
    """Draw the curves of the benchmarks that have results, up to the largest number of facts; return the files."""
    runs = {FACTS: found} | larger(folder)
    drawn = []
    if "passes" in found:
        drawn.append(folder / "pass_time.svg")
        _side_by_side(_passes(runs), "seconds a pass", drawn[-1])
    if "recalls" in found:
        drawn.append(folder / "recall_time.svg")
        _side_by_side(_recalls(runs), "milliseconds a recall, p50", drawn[-1])
    if curves := "forgetting" in found and found["forgetting"].details.get("curves"):
        drawn.append(folder / "forgetting.svg")
        _forgetting(curves, drawn[-1])
    return drawn


def _passes(runs: Mapping[int, Mapping[str, Answers]]) -> dict[str, Curves]:
    """Return passes by stored and by due facts, of the largest run, since a curve is of one run."""
    facts, details = max((facts, one["passes"].details) for facts, one in runs.items() if "passes" in one)
    due: dict[str, Sequence[float]] = details.get("pass_seconds_by_due", {})
    by_due = {f"{facts:,} {STORED}": due} if due else {}
    return {f"{STORED}, as many due in each": details["pass_seconds"], DUE: by_due}


def _recalls(runs: Mapping[int, Mapping[str, Answers]]) -> dict[str, Curves]:
    """Return recalls by stored facts in total, preferring larger runs, and in a namespace."""
    by_stored: Curves = {}
    by_size: Curves = {}
    for facts, one in runs.items():
        if "recalls" in one:
            details = one["recalls"].details
            for name, curve in details.get("p50_ms_by_stored", {}).items():
                by_stored[name] = by_stored.get(name, {}) | curve
            by_size[f"{facts:,} {STORED}"] = details["p50_ms_by_namespace_size"]
    return {f"{STORED}, in ever more namespaces": by_stored, "facts in the namespace that is asked": by_size}


def _side_by_side(panels: Mapping[str, Curves], up: str, path: Path) -> None:
    """Draw a panel for each quantity on the x-axis."""
    shown = {across: curves for across, curves in panels.items() if curves}
    figure, places = plt.subplots(1, len(shown), figsize=(5.5 * len(shown), 3.8), squeeze=False, layout="constrained")
    for axes, (across, curves) in zip(places[0], shown.items(), strict=True):
        for name, runs in curves.items():
            _curve(axes, runs, name)
        axes.set(xscale="log", xlabel=across, ylabel=up)
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _curve(axes: Any, runs: Mapping[str, Sequence[float]], name: str) -> None:
    """Draw the median of runs by size, with their range and the sizes as labels."""
    sizes = sorted(runs, key=int)
    middles = [median(runs[size]) for size in sizes]
    below = [middle - min(runs[size]) for middle, size in zip(middles, sizes, strict=True)]
    above = [max(runs[size]) - middle for middle, size in zip(middles, sizes, strict=True)]
    axes.errorbar(list(map(int, sizes)), middles, yerr=[below, above], marker="o", capsize=3, label=name)


def _forgetting(sets: Mapping[str, Any], path: Path) -> None:
    """Draw evidence kept and found by the share of facts left: a column per set, a row per measure."""
    size = (4.2 * len(sets), 3.4 * len(KEPT))
    figure, places = plt.subplots(len(KEPT), len(sets), figsize=size, squeeze=False, layout="constrained")
    for column, (name, measured) in enumerate(sets.items()):
        for axes, what in zip(places[:, column], KEPT, strict=True):
            axes.set_visible(what in measured)
            for choice, points in sorted(measured.get(what, {}).items()):
                _interval(axes, points, choice)
            axes.set(xlabel="facts kept, %", ylabel=what, ylim=(0, 1), title=name)
            axes.grid(visible=True, alpha=0.3)
    places[0][0].legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _interval(axes: Any, points: Mapping[str, Sequence[float]], name: str) -> None:
    """Draw means by share with their intervals as a band."""
    shares = sorted(points, key=float)
    middles, lows, highs = zip(*(points[share] for share in shares), strict=True)
    across = [100 * float(share) for share in shares]
    axes.plot(across, middles, "-" if name.startswith("Ebb") else ":", label=name)
    axes.fill_between(across, lows, highs, alpha=0.1)
