"""The curves of cost: what a pass and a recall take as ever more is stored, and what decay costs and saves."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from tests.benchmarks.figures import Answers

mpl.use("Agg")
mpl.rcParams["svg.hashsalt"] = "ebb"  # equal figures give equal files


def draw(found: dict[str, Answers], folder: Path) -> list[Path]:
    """Draw the curves of those benchmarks that were run; return the files."""
    drawn = []
    if "passes" in found:
        states = found["passes"].details["pass_seconds"]
        drawn.append(folder / "pass_time.svg")
        _curves(states, "facts stored, as many due in each", "seconds a pass", drawn[-1])
    if "recalls" in found:
        by_size = {"recall": found["recalls"].details["p50_ms_by_namespace_size"]}
        drawn.append(folder / "recall_time.svg")
        _curves(by_size, "facts in the namespace, of as many in all", "milliseconds a recall (p50)", drawn[-1])
    if "price" in found:
        drawn.append(folder / "price.svg")
        _price(found["price"].details, drawn[-1])
    return drawn


def _curves(named: Mapping[str, Mapping[str, Sequence[float]]], across: str, up: str, path: Path) -> None:
    """Draw the median of runs by size, with their range, one line for each name."""
    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    for name, runs in named.items():
        sizes = sorted(runs, key=int)
        middles = [median(runs[size]) for size in sizes]
        below = [middle - min(runs[size]) for middle, size in zip(middles, sizes, strict=True)]
        above = [max(runs[size]) - middle for middle, size in zip(middles, sizes, strict=True)]
        axes.errorbar(list(map(int, sizes)), middles, yerr=[below, above], marker="o", capsize=3, label=name)
    axes.set(xscale="log", xlabel=across, ylabel=up)
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _price(details: Mapping[str, Any], path: Path) -> None:
    """Draw what each way of living a year saves in bytes and loses in recall, beside forgetting at random."""
    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    kinds: dict[str, list[tuple[float, float]]] = {}
    for name, told in details.items():
        for one in told if isinstance(told, list) else [told]:
            if isinstance(one, dict) and "bytes" in one:
                kind = "as many forgotten at random" if isinstance(told, list) else name.split(" asked")[0]
                kinds.setdefault(kind, []).append((one["bytes saved, %"], one["points lost at 10"]))
    for kind, points in sorted(kinds.items()):
        random = kind.startswith("as many")
        axes.plot(*zip(*sorted(points), strict=True), "x" if random else "o-", label=kind, alpha=0.5 if random else 1.0)
    axes.set(xlabel="bytes saved after a year, %", ylabel="points of recall@10 lost")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize="x-small")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
