"""Endings: the settings of the coming passes, the facts that end soon without use, and notices to their owners."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import httpx2
import numpy as np
from ebb.contract.reports import EndingFact
from ebb.contract.values import parsed
from pydantic import ValidationError

from workers.context import Context
from workers.coordination import signals
from workers.core.fading import FadingRules, ends
from workers.core.hygiene import SECTIONS, Document, changed
from workers.core.value import value
from workers.errors import InvalidInputError
from workers.memory.lifetime import Ending, endings_at
from workers.memory.namespace_settings import NamespaceRules, affects_decay, hygiene, rules_in_words, rules_of
from workers.memory.turn_limit import with_turn_limit
from workers.settings import Settings
from workers.storage import activity, due, facts, namespaces
from workers.storage.activity import Activity
from workers.storage.connection import Connection, snapshot, transaction
from workers.storage.namespaces import Namespace
from workers.threads import within


@dataclass(frozen=True, slots=True)
class Outlook:
    """The settings of the coming passes: those of the operator (`context`), the namespace's own, and their rules.

    The first pass visits `every` fact if the due times were computed by other settings. By the rules of the `janitor`,
    passes decide which held facts are over.
    """

    context: Context
    own: Document
    rules: NamespaceRules
    every: bool
    janitor: FadingRules


def outlook(context: Context, db: Connection, tenant: Namespace, given: Sequence[str] = ()) -> Outlook:
    """Return the outlook of a namespace, with the settings that are `given`, each as `PATH=VALUE`.

    Raises:
        InvalidInputError: a setting is unknown, or its value is not allowed.
    """
    applied = due.rules(db) or rules_in_words(context)
    context, own = with_settings(context, tenant.settings, given) if given else (context, tenant.settings)
    every = tenant.unsettled or affects_decay(tenant.settings, own) or rules_in_words(context) != applied
    numbers = hygiene(context, own)
    rules = NamespaceRules(rules_of(context, numbers), np.array(tenant.turns), np.array(numbers.persistent_turns))
    return Outlook(context, own, rules, every, rules_of(context, numbers, janitor=True))


def visited(db: Connection, tenant: Namespace, ahead: Outlook, now: datetime, until: datetime) -> Iterator[Activity]:
    """Yield batches of the facts that passes after `now` visit until an instant.

    By other settings the first pass applies another turn limit, and held facts may live on.
    """
    for rows in due.due_by(db, tenant.id, until, every=ahead.every):
        if ahead.every:
            expired = rows.explicit & (rows.anchors.expires_at <= now.timestamp()) & np.isposinf(rows.due_at)
            yield with_turn_limit(rows.only(~(rows.held & expired)), ahead.rules, now)
        else:
            yield rows


OPERATORS = ("cold_threshold", "forget_limit", "forget_limit_week")
"""Settings of the operator, which namespaces cannot override."""


def with_settings(context: Context, own: Document, given: Sequence[str]) -> tuple[Context, Document]:
    """Return a context and namespace settings with each `PATH=VALUE` applied, in the format of `ebb settings --set`.

    Raises:
        InvalidInputError: a setting is unknown, or its value is not allowed.
    """
    values = dict(_assignment(one) for one in given)
    operators = {name: value for name, value in values.items() if name in OPERATORS}
    document = {_whole_path(name): value for name, value in values.items() if name not in OPERATORS}
    try:
        settings = Settings(**(context.settings.model_dump() | operators))
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidInputError(f"set: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    try:
        return Context(settings), changed(own, document, None)
    except InvalidInputError as fault:
        raise InvalidInputError(f"set: {fault} A forecast also takes {', '.join(OPERATORS)}.") from None


def _whole_path(path: str) -> str:
    """Return the full path of a setting; `hygiene.` may be omitted."""
    return f"hygiene.{path}" if path.split(".", maxsplit=1)[0] in (*SECTIONS, "schedule") else path


def _assignment(given: str) -> tuple[str, Any]:
    path, sign, value = given.partition("=")
    if not sign or not path.strip():
        raise InvalidInputError(f"set: {given!r} is no PATH=VALUE.")
    return path.strip(), parsed(value)


log = logging.getLogger(__name__)

BATCH = 10_000
MOST = 100


def ending(
    context: Context,
    namespace: str,
    days: int,
    now: datetime,
    *,
    by_value: bool,
    most: int = MOST,
    without: AbstractSet[UUID] = frozenset(),
    given: Sequence[str] = (),
) -> list[EndingFact]:
    """Return the facts that end within `days`, other than `without`; most valuable first, or earliest.

    Held facts, which have ended already, are left out. Its cost depends on the number of due facts, or of all facts
    with other settings, such as those `given` as `PATH=VALUE`; what is over by these ends now.
    """
    until = now + timedelta(days=days)
    with snapshot(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        if tenant is None:
            return []
        settings = outlook(context, db, tenant, given)
        first: list[tuple[float, UUID, Ending, float]] = []
        for rows in visited(db, tenant, settings, now, until):
            at, reasons = ends(rows.anchors, settings.rules.rules)
            over, at = at <= now.timestamp(), np.maximum(at, now.timestamp())
            lasting = activity.lasting(db, tenant.id, rows.only(over).ids, now)
            ends_now = over & np.array([id_ in lasting for id_ in rows.ids], dtype=np.bool_)
            others = np.array([id_ not in without for id_ in rows.ids])
            places = np.flatnonzero((~over | ends_now) & (at <= until.timestamp()) & ~rows.held & others)
            order = -rows.value_rank if by_value else at
            worst = first[-1][0] if len(first) == most else np.inf
            places = places[order[places] <= worst]
            found = endings_at(at[places], reasons[places])
            keys = zip(order[places].tolist(), places.tolist(), found, strict=True)
            first += [(key, rows.ids[place], one, float(rows.value_rank[place])) for key, place, one in keys]
            first = sorted(first, key=lambda one: one[:2])[:most]
        texts = facts.excerpts(db, tenant.id, [id_ for _, id_, _, _ in first])
        first = [one for one in first if one[1] in texts]  # others were erased meanwhile
    values = value(np.array([rank for *_, rank in first], np.float64), now.timestamp()).tolist()
    return [
        EndingFact(id=id_, text=texts[id_], ends_at=one.at, ends_for=one.reason, value=round(worth, 4))
        for (_, id_, one, _), worth in zip(first, values, strict=True)
    ]


Position = tuple[int, UUID]
"""The position of an iteration over namespaces: the id of the last one; the fact is ignored."""

EVENT = "memory.ending"
WEBHOOK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Notice:
    """Facts of a namespace that end soon and were in no earlier notice, most valuable first."""

    namespace: str
    sent_at: datetime
    facts: list[EndingFact]

    @property
    def document(self) -> dict[str, Any]:
        """Return the notice as JSON, with the request that keeps its facts."""
        facts = [one.model_dump(mode="json") for one in self.facts]
        ids = [fact["id"] for fact in facts]
        headers = {"X-Ebb-Namespace": self.namespace}
        keep = {"method": "POST", "path": "/memory/held/keep", "headers": headers, "body": {"ids": ids}}
        return {"event": EVENT, "namespace": self.namespace, "facts": facts, "keep": keep}


def notify(
    context: Context, after: Position, now: datetime, until: float, announce: Callable[[Notice], None]
) -> Position | None:
    """Announce and deliver the notices of the next namespace; return the position to continue from, or None at the end.

    From `until` on the monotonic clock, what is left of a namespace waits for the next round, so that its facts and a
    slow webhook hold up no other. Branches get none: their facts only show what time would do.
    """
    with transaction(context.database_url) as db:
        following = namespaces.following(db, after[0]) if context.settings.ending_notice_days else None
    if following is None:
        return None
    id_, name = following
    for notice in notices(context, name, now):
        announce(notice)
        deliver(context, notice)
        if time.monotonic() >= until:
            break
    return id_, after[1]


def notices(context: Context, namespace: str, now: datetime) -> Iterator[Notice]:
    """Yield notices of the facts that end within `EBB_ENDING_NOTICE_DAYS`, each for up to `MOST` facts.

    A namespace with more than `BATCH` such facts gets the rest on the next call.
    """
    noticed = signals.noticed(context.redis, namespace, now)
    days = context.settings.ending_notice_days
    found = ending(context, namespace, days, now, by_value=True, most=BATCH, without=noticed) if days else []
    for begin in range(0, len(found), MOST):
        yield Notice(namespace, now, found[begin : begin + MOST])


def deliver(context: Context, notice: Notice) -> None:
    """Send a notice to the webhook, if configured; after a failure its facts are in the next notice again."""
    if url := context.settings.ending_webhook:
        try:
            answer = within(WEBHOOK_SECONDS, lambda: _post(url, notice.document))
            fault = None if answer.is_success else f"it answered {answer.status_code}"
        except TimeoutError:
            fault = f"it did not answer within {WEBHOOK_SECONDS:g} s"
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            fault = f"{type(error).__name__}: {error}"
        if fault is not None:  # without the address, which may contain a secret
            log.warning("the webhook for facts that end soon failed, and gets them again later: %s", fault)
            return
    ends = {one.id: one.ends_at for one in notice.facts}
    signals.note_noticed(context.redis, notice.namespace, ends, notice.sent_at)


def _post(url: str, document: Mapping[str, Any]) -> httpx2.Response:
    """Return the answer of the webhook without its body, which may have no end."""
    with httpx2.stream("POST", url, json=document, timeout=WEBHOOK_SECONDS) as answer:
        return answer
