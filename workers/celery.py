"""The Celery app, its configuration and beat schedule, for `ebb worker`, `ebb beat` and `ebb flower`."""

import os
from contextlib import suppress
from datetime import timedelta
from functools import cached_property
from typing import Any

import click
from celery.app.events import Events
from celery.signals import after_task_publish, beat_init, celeryd_init, import_modules, setup_logging
from ebb import headers
from kombu.entity import Queue
from redis.exceptions import RedisError

from workers import ONE_THREAD, clock, flower, logs, redaction
from workers.clock import Clock
from workers.coordination import signals, transport
from workers.coordination.redis import clock as redis_clock
from workers.coordination.redis import own_keys
from workers.cron import crontabs
from workers.errors import SettingsError
from workers.queues import FIRST, QUEUES, SENT_AT, configuration
from workers.settings import Settings
from workers.storage import routing

for variable, threads in ONE_THREAD.items():
    os.environ.setdefault(variable, threads)

PRUNE_SECONDS = 3_600.0
"""Interval between prunes; like the lifetimes, not a setting."""

CLEAN_SECONDS = 3_600.0
"""Erased rows are out of the database's pages and indexes after this; not a setting either."""

SCHEDULED = {"scheduled": True, "everywhere": True}
"""Arguments of tasks sent by beat, for every namespace."""

MISSED_SECONDS = 600
"""Scheduled tasks missed by more than this wait for their next time."""


def worker_configuration(settings: Settings) -> dict[str, Any]:
    """Return the configuration of workers and beat, beyond the shared one."""
    return {
        "imports": (
            "workers.tasks.store",
            "workers.tasks.bulk",
            "workers.tasks.documents",
            "workers.tasks.recall",
            "workers.tasks.reports",
            "workers.tasks.retention",
            "workers.tasks.graph",
            "workers.tasks.decay",
            "workers.tasks.admin",
            "workers.tasks.maintenance",
            "workers.tasks.hygiene",
            "workers.startup",
        ),
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_retry_on_worker_lost": True,
        "task_acks_on_failure": True,
        "task_acks_on_timeout": True,
        "task_soft_time_limit": 45,
        "task_time_limit": 60,
        "task_publish_retry_policy": {"max_retries": 20, "interval_start": 0, "interval_step": 0.2, "interval_max": 1},
        "worker_prefetch_multiplier": 1,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_soft_shutdown_timeout": 8.0,
        "worker_max_memory_per_child": 400_000 if settings.embedder in {None, "static", "hashing"} else 4_000_000,
        "worker_send_task_events": True,
        "broker_channel_error_retry": True,  # a Redis that lacks replicas, or room on its disk, refuses `brpop` too
        "worker_consumer": "workers.programs:Consumer",
        "worker_hijack_root_logger": False,
        "result_backend_always_retry": True,
        "result_backend_max_retries": 200,
        "timezone": settings.timezone,
        "beat_schedule": schedule(settings),
        "beat_scheduler": "workers.programs:Scheduler",
        "beat_cron_starting_deadline": MISSED_SECONDS,
    }


def schedule(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return the beat schedule; messages are taken before other maintenance, and expire after their period."""
    entries = {
        "decay.plan": (settings.decay_interval_minutes * 60, SCHEDULED),
        "decay.prune": (PRUNE_SECONDS, SCHEDULED),
        "memory.embed_pending": (60.0, {}),
        "memory.lexemes": (60.0, {}),
        "memory.sweep_outbox": (60.0, {}),
        "memory.publish_keys": (60.0, {}),
        "memory.settle_tallies": (60.0, {}),
        "memory.ann": (600.0, {}),
        "memory.thin_course": (86_400.0, {}),
        "memory.purge": (86_400.0, SCHEDULED),
        "memory.rebuild_indexes": (86_400.0, {}),
        "memory.clean": (CLEAN_SECONDS, {}),
        "memory.consolidate_all": (86_400.0, {}),
    }
    if settings.ending_notice_days:
        entries["memory.notify_endings"] = (3_600.0, {})
    if settings.folders:
        entries["memory.read_folders"] = (settings.folder_minutes * 60, {})
    periodic = {
        name: {
            "task": name,
            "schedule": timedelta(seconds=seconds),
            "kwargs": arguments,
            "options": {"expires": max(seconds, 30.0), "priority": FIRST},
        }
        for name, (seconds, arguments) in entries.items()
    }
    return periodic | (_relations_schedule(settings) if settings.relation_decay else {})


def _relations_schedule(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return the schedule in `EBB_TIMEZONE`; readers compute weights themselves and do not depend on it."""
    entry = {"task": "relations.decay", "kwargs": SCHEDULED, "options": {"expires": MISSED_SECONDS, "priority": FIRST}}
    names = ("relations.decay", "relations.decay by weekday")
    schedules = crontabs(settings.relation_schedule)
    return {name: entry | {"schedule": when} for name, when in zip(names, schedules, strict=False)}


def _load_settings() -> Settings:
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        raise SystemExit(f"ebb: {error}") from None
    if not settings.redis_url:
        raise SystemExit("ebb: EBB_REDIS_URL is not set. Set it, or let `ebb up` start servers of its own.")
    return settings


class _Events(Events):  # type: ignore[misc]  # Celery comes without types
    dispatcher_cls = "workers.programs:Dispatcher"


class _Ebb(transport.App):
    """Celery with Ebb's own worker and beat, each loaded only by its own process."""

    events_cls = _Events

    @cached_property
    def Beat(self) -> Any:  # noqa: N802 - Celery's name
        return self.subclass_with_self("workers.programs:Beat")

    @cached_property
    def Worker(self) -> Any:  # noqa: N802 - Celery's name
        return self.subclass_with_self("workers.programs:Worker")

    def send_task(self, name: str, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        """Send a task with redacted argument texts for monitors, instants by Redis' clock, and the sender's shard.

        A callback of another program goes to its queue, which Ebb's workers do not know.
        """
        if isinstance(queue := options.get("queue"), str) and queue not in QUEUES:
            options["queue"] = Queue(queue)  # type: ignore[no-untyped-call]
        own = self._sent_at() | headers.of_trace() | routing.headers()
        options["headers"] = own | (options.get("headers") or {})
        options |= clock.with_start(options, self.server_clock)
        options |= clock.with_deadline(options, self.server_clock) | redaction.headers(args, kwargs)
        return super().send_task(name, args, kwargs, **options)

    def _sent_at(self) -> dict[str, float]:
        """Return the header by which the age of a queue is known."""
        with suppress(RedisError):  # then sending fails too
            return {SENT_AT: self.server_clock.now().timestamp()}
        return {}

    @cached_property
    def server_clock(self) -> Clock:
        """Return Redis' clock."""
        keys = own_keys(settings.redis_url)
        return Clock(lambda: redis_clock(keys))


settings = _load_settings()
transport.install()
app = _Ebb("ebb", control="workers.coordination.transport:Control")
app.loader.override_backends = transport.BACKENDS
app.conf.update(configuration(settings.redis_url) | worker_configuration(settings))
flower.guard(settings.flower_url)


@app.on_after_finalize.connect
def _leave_out_maps(**_: Any) -> None:
    """Refuse Celery's tasks that call others without ids of their own, by which these would take each other's place."""
    for name in ("celery.map", "celery.starmap", "celery.chunks"):
        app.tasks.unregister(name)


@setup_logging.connect
def _log(**_: Any) -> None:
    logs.configure(settings)


@beat_init.connect
def _note_what_beat_sends(**_: Any) -> None:
    """Record in Redis when beat last sent a task, for the metrics."""
    keys = own_keys(settings.redis_url)

    def note(**_: Any) -> None:
        with suppress(RedisError):
            signals.note_beat(keys, app.server_clock.now().timestamp())

    after_task_publish.connect(note, weak=False)


@import_modules.connect
def _log_from_the_start(**_: Any) -> None:
    """Make workers, beat and Flower log as JSON before they set up logging, if configured."""
    command = click.get_current_context(silent=True)
    if settings.log_format == "json" and command is not None and command.info_name in ("worker", "beat", "flower"):
        logs.configure(settings)


@celeryd_init.connect
def _show_no_banner(instance: Any, **_: Any) -> None:
    """Suppress the worker's banner for JSON logs; for beat, `--quiet` is enough."""
    if settings.log_format == "json":
        from celery.apps import worker  # noqa: PLC0415 - only a worker has loaded it

        instance.quiet, worker.safe_say = True, logs.write_json
