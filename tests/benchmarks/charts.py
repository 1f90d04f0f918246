"""Charts other than curves over sizes: stages, bytes, pairs of a small and a large table, and soaks."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.ticker import LogLocator

from tests.benchmarks.figures import Answers

mpl.use("Agg")
mpl.rcParams["svg.hashsalt"] = "ebb"  # equal figures give equal files

SMALL = ", small table"
LARGER = re.compile(r", \w+ times the facts$")
STAGES = "stages_ms, "
LONG = 30
"""Letters of a name from which a legend has two columns instead of three."""

LEFT_OUT = ("rest", "whole")


def draw(found: Mapping[str, Answers], folder: Path) -> list[Path]:
    """Draw the charts of the benchmarks that have results; return the files."""
    charts = {
        "lives": ("lives_time.svg", _pairs),
        "recalls": ("recall_stages.svg", _recall_stages),
        "queued": ("queued_stages.svg", _queued_stages),
        "throughput": ("throughput.svg", _throughput),
        "space": ("space.svg", _space),
        "soak": ("soak.svg", _soak),
    }
    drawn = []
    for name, (file, chart) in charts.items():
        if name in found and chart(found[name], folder / file):
            drawn.append(folder / file)
    return drawn


def _pairs(answers: Answers, path: Path) -> bool:
    """Draw durations on a small table and on one ten times larger, with equally many facts due."""
    medians = {one.name: one.measured.median for one in answers.figures}
    names = [name.removesuffix(SMALL) for name in medians if name.endswith(SMALL)]
    endings = dict.fromkeys(LARGER.search(name)[0] for name in medians if LARGER.search(name))  # type: ignore[index]  # they match
    figure, axes = plt.subplots(figsize=(8, 0.5 * len(names) + 1), layout="constrained")
    for shift, ending in zip((-0.2, 0.2), (SMALL, *endings), strict=True):
        took = [medians[name + ending] for name in names]
        axes.barh([y + shift for y in range(len(names))], took, 0.38, label=ending.removeprefix(", "))
    axes.set(yticks=range(len(names)), yticklabels=names, xlabel="milliseconds, median, as many due in both")
    axes.set(xscale="log")
    axes.set_xlim(left=1)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.invert_yaxis()
    return _save(figure, axes, path)


def _recall_stages(answers: Answers, path: Path) -> bool:
    parts = {name.removeprefix(STAGES): one for name, one in answers.details.items() if name.startswith(STAGES)}
    if not parts:
        return False
    parts = {
        where: {stage: ms for stage, ms in stages.items() if not stage.startswith("—") and stage not in LEFT_OUT}
        | {"rest": stages["rest"]}
        for where, stages in parts.items()
    }
    return _stacked(parts, "milliseconds a recall, mean", path)


def _queued_stages(answers: Answers, path: Path) -> bool:
    stages: dict[str, float] = answers.details.get("stages_ms", {})
    return bool(stages) and _stacked({"by the queue": stages}, "milliseconds a recall, median", path)


def _space(answers: Answers, path: Path) -> bool:
    by_state = answers.details["bytes a fact by table"]
    parts = {
        state: {table: sum(sizes.values()) for table, sizes in tables.items()} for state, tables in by_state.items()
    }
    return _stacked(parts, "bytes a fact, indexes included", path)


def _stacked(bars: Mapping[str, Mapping[str, float]], along: str, path: Path) -> bool:
    """Draw one stacked bar for each name."""
    parts_there = dict.fromkeys(part for parts in bars.values() for part in parts)
    height = 0.6 * len(bars) + 0.25 * (len(parts_there) // 2 + 1) + 0.9
    figure, axes = plt.subplots(figsize=(8, height), layout="constrained")
    reached, colours = dict.fromkeys(bars, 0.0), iter(mpl.color_sequences["tab20"])
    for part in parts_there:
        sizes = [parts.get(part, 0.0) for parts in bars.values()]
        axes.barh(list(bars), sizes, 0.7, left=list(reached.values()), label=part, color=next(colours))
        reached = {name: before + size for (name, before), size in zip(reached.items(), sizes, strict=True)}
    axes.set(xlabel=along)
    axes.invert_yaxis()
    axes.grid(visible=True, axis="x", alpha=0.3)
    figure.legend(fontsize="small", loc="outside lower center", ncols=2 if max(map(len, parts_there)) > LONG else 3)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return True


def _throughput(answers: Answers, path: Path) -> bool:
    """Draw tasks a second over the number of children, each with its range."""
    figure, axes = plt.subplots(figsize=(7.5, 4), layout="constrained")
    for name, by_children in answers.details["tasks_a_second_by_children"].items():
        children = sorted(by_children, key=int)
        middles = [sorted(by_children[one])[len(by_children[one]) // 2] for one in children]
        axes.plot(list(map(int, children)), middles, "o-", label=name)
    axes.set(xlabel="worker children", ylabel="tasks a second", yscale="log", xticks=[1, 2, 4])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    return _save(figure, axes, path, loc="center left", bbox_to_anchor=(1, 0.5))


def _soak(answers: Answers, path: Path) -> bool:
    """Draw the memory of each program, and the numbers of waiting tasks and stored facts, over the minutes of a run."""
    series = answers.details["series"]
    minutes = [at / 60 for at in series["seconds"]]
    figure, (above, below) = plt.subplots(2, 1, figsize=(7, 6), sharex=True, layout="constrained")
    for program, own in series["MiB of all"].items():
        above.plot(minutes, own, label=program)
    _waiting(below, minutes, series["servers"])
    above.set(ylabel="MiB, all processes of a program")
    below.set(xlabel="minutes", ylabel="number", yscale="symlog")
    for axes in (above, below):
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize="x-small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return True


def _waiting(axes: Any, minutes: Sequence[float], servers: Mapping[str, Sequence[float]]) -> None:
    for name in ("facts", "live facts", "redis clients", "connections", "queue store", "queue maintenance"):
        axes.plot(minutes, servers[name], label=name)


def _save(figure: Any, axes: Any, path: Path, **where: Any) -> bool:
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize="x-small", **where)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return True
