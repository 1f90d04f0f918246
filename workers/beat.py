"""Beat that starts only with a database it fits, and ends when it is asked to."""

from types import FrameType
from typing import Any

from celery.apps import beat
from celery.beat import Service
from celery.platforms import signals
from celery.signals import beat_init

from workers.errors import EbbError
from workers.settings import Settings
from workers.storage import schema


@beat_init.connect  # type: ignore[untyped-decorator]  # Celery comes without types
def check_database(**_: Any) -> None:
    """Refuse to send passes to a database that is not there, or of another version."""
    try:
        schema.verify_at(Settings.from_environment().database_url)
    except EbbError as error:
        raise SystemExit(f"ebb: {error}") from None


class Beat(beat.Beat):  # type: ignore[misc]  # Celery comes without types
    """Celery's beat, whose loop ends even where the exception that should end it is lost.

    Python drops what a signal's handler raises while a weak reference is cleared, as happens after each import.
    Celery's own beat then goes on until it is killed, with a schedule that it has closed.
    """

    def install_sync_handler(self, service: Service) -> None:
        """Have SIGTERM and SIGINT end the service, which writes its schedule down as it ends."""

        def end(_number: int, _frame: FrameType | None) -> None:
            service.stop()
            raise SystemExit

        signals.update(SIGTERM=end, SIGINT=end)
