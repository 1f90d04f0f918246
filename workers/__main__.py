"""Start one process by a command of Celery: `python -P -m workers worker|beat|flower OPTIONS`.

The program `celery` would load the commands of every plugin into each process, and search the current folder first.
"""

import gc
import sys
from importlib import import_module

gc.disable()  # while modules are loaded, which create many objects and little garbage

import click

from workers import GARBAGE_THRESHOLD

sys.modules["pygments"] = None  # type: ignore[assignment]  # which celery.bin.base would load, for colours of `inspect`
from celery.bin.base import CLIContext

del sys.modules["pygments"]

COMMANDS = {"worker": "celery.bin.worker", "beat": "celery.bin.beat", "flower": "flower.command"}


def main(name: str, options: list[str]) -> None:
    """Run a worker, beat or Flower; only a worker loads tasks."""
    command: click.Command = getattr(import_module(COMMANDS[name]), name)
    celery = import_module("workers.celery")
    app, settings = celery.app, celery.settings
    if name == "worker":
        for module in app.conf.imports:
            import_module(module)  # Celery itself would search the current folder first
    else:
        app.conf.imports = ()
    quiet = settings.log_format == "json"
    parent = click.Context(click.Group("ebb"), obj=CLIContext(app=app, no_color=False, workdir=None, quiet=quiet))
    level = [] if name == "flower" else [f"--loglevel={settings.log_level}"]
    gc.freeze()  # skips what was loaded in each collection, and in the one at exit
    if name != "flower":  # its tasks are reference cycles, which would stay until it had allocated millions of objects
        gc.set_threshold(GARBAGE_THRESHOLD)
    gc.enable()
    command.main([*options, *level], prog_name=name, parent=parent)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
