"""The chart of a soak: memory, waiting tasks and stored facts over its minutes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from tests.benchmarks.figures import Answers

mpl.use("Agg")
mpl.rcParams["svg.hashsalt"] = "ebb"  # equal figures give equal files


def draw(answers: Answers, path: Path) -> None:
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


def _waiting(axes: Any, minutes: Sequence[float], servers: Mapping[str, Sequence[float]]) -> None:
    for name in ("facts", "live facts", "redis clients", "connections", "queue store", "queue maintenance"):
        axes.plot(minutes, servers[name], label=name)
