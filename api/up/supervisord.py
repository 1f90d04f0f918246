"""supervisord, with logs that may fail: on a full disk lines are lost, and it goes on.

A log that cannot be written would end it, and with it all that it runs; or it would stop reading what a program prints,
and the program would wait for it without an end.
"""

from contextlib import suppress
from pathlib import Path

from supervisor import loggers, supervisord


class LossyLog(loggers.RotatingFileHandler):  # type: ignore[misc]  # supervisor comes without types
    """A rotated log that loses what cannot be written."""

    def handleError(self) -> None:  # noqa: N802 - supervisor's name
        """Report nothing: the report would go to the same disk."""

    def doRollover(self) -> None:  # noqa: N802 - supervisor's name
        """Begin the next file; if the disk has no room for it, go on with this one."""
        try:
            super().doRollover()
        except (OSError, ValueError):  # ValueError: an earlier attempt has closed it
            with suppress(OSError):
                self.stream = Path(self.baseFilename).open("ab")  # noqa: SIM115  the handler closes it


def main() -> None:
    """Run supervisord with the options of the command line."""
    loggers.RotatingFileHandler = LossyLog
    supervisord.main()


if __name__ == "__main__":
    main()
