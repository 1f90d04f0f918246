"""Tools that tell what is remembered."""

from typing import Annotated, Literal

from pydantic import Field

from api.mcp.tool import Call, ForgottenFor, Run, Since, Until, brief, given, read, reads
from api.transport import Answer

Limit = Annotated[int, Field(description="How many facts at most.", ge=1, le=100)]
Query = Annotated[str, Field(description="A question or topic in your own words.", min_length=1)]


def recall(
    call: Call,
    query: Query,
    limit: Limit = 10,
    tag: Annotated[str | None, Field(description="Only facts with this tag; then only words are matched.")] = None,
    category: Annotated[str | None, Field(description="Only facts of this category.")] = None,
    as_of: Annotated[
        str | None, Field(description="What was true at this instant or date (ISO 8601), superseded facts included.")
    ] = None,
    explain: Annotated[bool, Field(description="Also say how each score came about and what was left out.")] = False,
) -> Answer:
    """Find what is remembered about a question, by words and by meaning. Use it before you answer from memory.

    Returns {"results": [{"id", "text", "score", "tier", "created_at", …}], "by_meaning"}, best first; nothing that fits
    is an empty list. Where `by_meaning` is false only words were matched: ask again in other words. Being recalled
    strengthens facts. For one property of a known person or thing `lookup` is surer, and to fill a prompt within a
    budget of tokens use `context`.
    """
    memory, options = read(call), given(tag=tag, category=category, as_of=as_of)
    answer = memory.client.recall(query, limit=limit, explain=explain, touch=memory.touches, **options)
    return {"results": [], **brief(answer)}


def lookup(
    call: Call,
    entity: Annotated[str, Field(description="Whom or what facts are about, in any case.", min_length=1)],
    key: Annotated[str | None, Field(description="Which of its properties; else all.")] = None,
    tag: Annotated[str | None, Field(description="Only facts with this tag.")] = None,
    as_of: Annotated[str | None, Field(description="What was true at this instant or date (ISO 8601).")] = None,
    limit: Limit = 20,
    cursor: Annotated[str | None, Field(description="To go on: the `next` of the answer before, else none.")] = None,
) -> Answer:
    """Return the facts about one person or thing by its name, or one property of it: exact, nothing is searched.

    Returns {"results": [{"id", "text", "confidence", "key", "value", …}]}, the most confident first, then the newest.
    Where there are more than `limit`, `cut` says so, and `next` is the cursor of those that follow.
    """
    memory, options = read(call), given(tag=tag, as_of=as_of, cursor=cursor)
    answer = memory.client.lookup(entity, key, touch=memory.touches, limit=limit, **options)
    return {"results": [], **brief(answer), **_cut(answer)}


def _cut(answer: Answer) -> Answer:
    """Return what an agent is told where there is more than it was given."""
    if answer["next"] is None:
        return {}
    return {
        "cut": f"These are the first {len(answer['results'])}: there are more. Give `next` as `cursor`, or a `key`."
    }


def context(
    call: Call,
    query: Annotated[str, Field(description="What the next prompt is about, such as the user's message.")],
    limit: Limit = 10,
    max_tokens: Annotated[int | None, Field(description="The budget, which counts all of the text.", ge=1)] = None,
    order: Annotated[
        Literal["rank", "stable"] | None,
        Field(description="`stable`: as told, so that a prompt cache holds; else the best first."),
    ] = None,
) -> Answer:
    """Return remembered facts as a block of text to put before a prompt, within a budget of tokens.

    Returns {"context", "tokens", "facts", "by_meaning"}; `context` is empty where nothing fits. Do not store its text
    again.
    """
    memory, options = read(call), given(max_tokens=max_tokens, order=order)
    answer = memory.client.context(query, limit=limit, touch=memory.touches, **options)
    return {"facts": [], **brief(answer)}


def stats(call: Call) -> Answer:
    """Return how much is remembered: facts by tier, fidelity and decay class, what is due, held, or contradictory.

    Use it to see whether memory is empty or needs care, not to find facts.
    """
    return read(call).client.stats()


def forgotten(
    call: Call,
    since: Since = None,
    until: Until = None,
    reason: ForgottenFor = None,
    run: Run = None,
    limit: Limit = 20,
    cursor: Annotated[str | None, Field(description="To go on: the `next` of the answer before, else none.")] = None,
) -> Answer:
    """List what was forgotten and can be restored, newest first, with its reason and until when; see `restore`.

    Returns {"facts": [{"id", "text", "reason", "forgotten_at", "run", "restorable_until"}], "next"}.
    """
    memory = read(call)
    chosen = given(since=since, until=until, reason=reason, run=run, cursor=cursor)
    return {"facts": [], **brief(memory.client.forgotten(limit, asked=memory.writes, **chosen))}


def held(
    call: Call,
    limit: Limit = 10,
    cursor: Annotated[str | None, Field(description="To go on: the `next` of the answer before, else none.")] = None,
) -> Answer:
    """List facts that are over but stay visible, because too many would have been forgotten at once.

    Returns {"held": [{"id", "text", "reason", "ended_at", …}], "total", "next"}. Their owner decides: `reinforce` keeps
    one, `forget` lets it go.
    """
    return read(call).client.held(limit, cursor)


TOOLS = (reads(recall), reads(lookup), reads(context), reads(stats), reads(held), reads(forgotten))
