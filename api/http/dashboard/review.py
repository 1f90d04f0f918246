"""Pages of decisions (forgotten and held facts, contradictions, last contexts), and actions on facts.

Actions are handlers of forms, which need the scope `write` and the page's token.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlencode
from uuid import UUID

from ebb.contract.facts import EDIT
from ebb.contract.values import Reason
from fastapi import Depends, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import TypeAdapter, ValidationError

from api.http import listings
from api.http.dashboard.facts import digest, fact_page
from api.http.dashboard.rendering import page, router, shortened, typed_share
from api.http.dashboard.visitors import FORM, Reading, Writing, check_token, here
from api.http.dispatch import Session
from api.http.door import door_of, reaching_redis
from api.http.routes import outcome
from workers.coordination import contexts
from workers.errors import InvalidInputError, NotFoundError

routes = router()

ROWS = 50
BEGINNING = 200
"""Characters of a fact that are shown of it among the last contexts."""

REASONS = get_args(Reason)
SHOWN = TypeAdapter(dict[str, str])
REMOVABLE = frozenset({"category", "entity", "key", "value", "valid_until"})
"""Fields that an edit removes if they are empty."""

EDITED = frozenset(EDIT.over_http) - {"id"}
"""Fields that an edit changes."""


@routes.get("/dashboard/forgotten")
def forgotten(request: Request, memory: Reading, reason: str = "", cursor: str = "") -> HTMLResponse:
    """Show forgotten facts, newest first; those forgotten on request only with the scope write."""
    given: dict[str, Any] = {name: one for name, one in (("reason", reason), ("cursor", cursor)) if one}
    found = memory.forgotten(limit=ROWS, asked="write" in memory.caller.scopes, **given)
    held = memory.held(limit=ROWS) if not given else {"held": [], "total": 0}
    shown: dict[str, Any] = {"found": found, "held": held, "reason": reason, "reasons": REASONS, "later": bool(cursor)}
    return page(request, "forgotten.html", **shown)


@routes.get("/dashboard/contradictions")
def contradictions(request: Request, memory: Reading, cursor: str = "") -> HTMLResponse:
    """Show pairs of facts with different values for one entity and key."""
    found = memory.contradictions(limit=ROWS, **({"cursor": cursor} if cursor else {}))
    return page(request, "contradictions.html", found=found, later=bool(cursor))


@routes.get("/dashboard/contexts")
def last_contexts(request: Request, memory: Reading) -> HTMLResponse:
    """Show the recent questions of agents and the facts that they got."""
    door = door_of(request)
    with reaching_redis():
        since = memory.seconds() - timedelta(hours=door.settings.last_contexts_hours).total_seconds()
        found = contexts.latest(door.of(memory.namespace).redis, memory.namespace, since)
    ids = list(dict.fromkeys(id_ for one in found for id_ in one.ids))
    texts = {one["id"]: shortened(one["text"], BEGINNING) for one in listings.each(memory, ids)}
    shown: dict[str, Any] = {"found": found, "texts": texts, "most": contexts.MOST_FACTS}
    return page(request, "contexts.html", **shown, hours=door.settings.last_contexts_hours)


Text = Annotated[str, Form()]
Next = Annotated[str, Form(alias="next")]

OWN_FORM = [*FORM, Depends(check_token)]


def _last(memory: Session, id_: str, *what: str) -> dict[str, Any]:
    """Return the details of the last event of a fact of one of these kinds; {} without such an event."""
    events = memory.history(id_, links=False)["events"]
    return next((event["details"] for event in reversed(events) if event["what"] in what), {})


def _unedit(memory: Session, id_: str) -> Any:
    was = _last(memory, id_, "edited").get("was")
    if not isinstance(was, dict):
        raise InvalidInputError("This fact was not edited, so there is nothing to undo.")
    # The history may be imported, and say anything.
    return memory.edit(id_, **{name: value for name, value in was.items() if name in EDITED})


ACTIONS: Mapping[str, Callable[[Session, str], Any]] = {
    "forget": lambda memory, id_: outcome(memory.forget([id_])),
    "restore": lambda memory, id_: outcome(memory.restore([id_])),
    "pin": lambda memory, id_: memory.pin(id_),
    "unpin": lambda memory, id_: memory.pin(id_, off=True),
    "repin": lambda memory, id_: memory.pin(id_, until=_last(memory, id_, "pinned").get("until")),
    "unedit": _unedit,
    "keep": lambda memory, id_: memory.keep([id_]),
    "let-go": lambda memory, id_: memory.let_go([id_]),
}
Action = Literal["forget", "restore", "pin", "unpin", "repin", "unedit", "keep", "let-go"]


@routes.post("/dashboard/facts/{id}/{action}", dependencies=OWN_FORM)
def act(memory: Writing, id: UUID, action: Action, next_: Next = "/dashboard/facts") -> RedirectResponse:
    """Perform an action on a fact and redirect to the page; the fact may have changed since that was shown."""
    answer = ACTIONS[action](memory, str(id))
    done: str = action
    if answer.get("action") == "unchanged":
        done = "unchanged"
    elif answer.get("decided") == 0:
        done = "not-held"
    elif action == "restore" and _last(memory, str(id), "forgotten", "superseded").get("reason") == "asked":
        done = "restore-asked"
    return back(next_, done, str(id))


@routes.post("/dashboard/edit/{id}", dependencies=OWN_FORM)
def edit(
    request: Request,
    memory: Writing,
    id: UUID,
    tags: Text = "",
    category: Text = "",
    entity: Text = "",
    key: Text = "",
    value: Text = "",
    importance: Text = "",
    decay_class: Text = "",
    valid_until: Text = "",
    shown: Text = "{}",
    next_: Next = "/dashboard/facts",
) -> Response:
    """Edit the fields of a fact that differ from those `shown`, a JSON object of their digests; empty ones are removed.

    Others stay as they are, as they may have changed since. An invalid one is explained in the form, with what was
    typed.
    """
    typed = {"category": category, "entity": entity, "key": key, "value": value, "valid_until": valid_until}
    typed |= {"tags": tags, "importance": importance, "decay_class": decay_class}
    before = _shown(shown)
    try:
        changes = _changes(typed, before)
        done = memory.edit(str(id), **changes) if changes else {"action": "unchanged"}
    except NotFoundError:
        raise
    except InvalidInputError as error:
        return fact_page(request, memory, id, error.status, typed=typed, shown=shown, said=str(error))
    return back(next_, "edit" if done["action"] == "updated" else "unchanged", str(id))


def _shown(text: str) -> dict[str, str]:
    try:
        return SHOWN.validate_json(text)
    except ValidationError:
        raise InvalidInputError("shown: is not what the page of the fact has there; open that page again.") from None


def _changes(typed: Mapping[str, str], shown: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of an edit whose texts are not those whose digests the form has."""
    changed = [name for name, text in typed.items() if shown.get(name) != digest(text)]
    given = {name: typed[name].strip() for name in changed}
    changes: dict[str, Any] = {name: text or None for name, text in given.items()}
    if "tags" in given:
        changes["tags"] = [tag.strip() for tag in given["tags"].split(",") if tag.strip()]
    if "importance" in given:
        changes["importance"] = typed_share("importance", given["importance"]) if given["importance"] else None
    return {name: value for name, value in changes.items() if value is not None or name in REMOVABLE}


@routes.post("/dashboard/contradictions", dependencies=OWN_FORM)
def resolve(
    memory: Writing,
    other: Annotated[UUID, Form()],
    keep: Annotated[UUID, Form()],
    both: Text = "",
    next_: Next = "/dashboard/contradictions",
) -> RedirectResponse:
    """Resolve a contradiction: one fact supersedes the other, or both are accepted."""
    if both:
        memory.resolve([str(keep), str(other)], both=True)
    else:
        memory.resolve([str(other)], keep=str(keep))
    return back(next_, "both" if both else "resolve", str(other))


def back(path: str, action: str, id_: str) -> RedirectResponse:
    """Redirect to a page of the dashboard, which shows what was done to a fact or a key."""
    path, said = here(path), urlencode({"done": action, "fact": id_})
    return RedirectResponse(f"{path}{'&' if '?' in path else '?'}{said}", HTTPStatus.SEE_OTHER)
