"""The command line, run in the test process with its own streams and environment."""

import io
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from unittest.mock import patch

from api.cli import main
from workers.storage.connection import close_pools

WIDTH = "80"


def stream(text: str = "") -> io.TextIOWrapper:
    """Return a text stream over bytes that is not a terminal."""
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8", newline="\n" if text else None)


def run(arguments: Sequence[str], environment: Mapping[str, str], stdin: str = "") -> CompletedProcess[str]:
    """Run `ebb` with these arguments; print unexpected errors as Python does."""
    out, err = stream(), stream()
    with ExitStack() as stack:
        for place, name, value in (("argv", sys, ["ebb", *arguments]), ("stdin", sys, stream(stdin))):
            stack.enter_context(patch.object(name, place, value))
        stack.enter_context(patch.dict("os.environ", {**environment, "COLUMNS": WIDTH}, clear=True))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        stack.callback(close_pools)
        code = _exit_code()
    return CompletedProcess(["ebb", *arguments], code, _written(out), _written(err))


def _exit_code() -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        return 1
    return 0


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
