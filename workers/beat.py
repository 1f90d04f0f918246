"""Beat that ends when it is asked to."""

from types import FrameType

from celery.apps import beat
from celery.beat import Service
from celery.platforms import signals


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
