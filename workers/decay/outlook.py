"""Outlook: the settings by which the coming passes decay a namespace, and the facts that they visit."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from pydantic import ValidationError

from workers.context import Context
from workers.core.hygiene import SECTIONS, Document, changed
from workers.errors import InvalidInputError
from workers.memory.namespace_settings import NamespaceRules, affects_decay, hygiene, rules_in_words, rules_of
from workers.memory.turn_limit import with_turn_limit
from workers.settings import Settings
from workers.storage import due
from workers.storage.activity import Activity
from workers.storage.connection import Connection
from workers.storage.namespaces import Namespace

BATCH = 10_000


@dataclass(frozen=True, slots=True)
class Outlook:
    """The settings of the coming passes: those of the operator (`context`), the namespace's own, and their rules.

    The first pass visits `every` fact if the due times were computed by other settings. With `by_hand`, the janitor
    decides which held facts are over.
    """

    context: Context
    own: Document
    rules: NamespaceRules
    every: bool
    by_hand: bool


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
    return Outlook(context, own, rules, every, numbers.by_hand)


def visited(db: Connection, tenant: Namespace, ahead: Outlook, now: datetime, until: datetime) -> Iterator[Activity]:
    """Yield batches of the facts that passes after `now` visit until an instant.

    By other settings the first pass applies another turn limit, and held facts may live on.
    """
    for rows in due.due_by(db, tenant.id, until, BATCH, every=ahead.every):
        if ahead.every:
            expired = rows.explicit & (rows.anchors.expires_at <= now.timestamp()) & np.isposinf(rows.due_at)
            waiting = rows.held & (ahead.by_hand | expired)
            yield with_turn_limit(rows.only(~waiting), ahead.rules, now)
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
    try:
        return path.strip(), json.loads(value)
    except ValueError:
        return path.strip(), value
