"""A program that uses each kind of entry of answers; mypy checks it as a program of a user, and a test runs it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from ebb import Memory, Rejected
from ebb.contract.operation import Answer

SHELF, DOOR = "The spare key lies on the shelf", "The spare key hangs by the door"
UNKNOWN = "01a1fd56-1f4b-7b0c-9c8e-3d5f0a7b2c11"
RELATION = {
    "source": "Mira", "target": "Anselm", "type": "knows", "initial_weight": 0.5,
    "last_observed": "2025-01-31T08:00:00Z", "created_at": "2025-01-31T08:00:00Z",
}  # fmt: skip


def use(memory: Memory) -> Iterator[tuple[Answer, list[str]]]:
    """Yield answers of an empty namespace, each with texts of its entries."""
    yield from store(memory)
    yield from find(memory)
    yield from compare(memory)
    yield from operate(memory)
    yield from forget(memory)


def store(memory: Memory) -> Iterator[tuple[Answer, list[str]]]:
    """Store facts, of which one is rejected and one is known, and import records."""
    about: dict[str, Any] = {"entity": "key", "key": "place", "tags": ["home"]}
    facts = [{"text": SHELF, "value": "shelf", **about}, {"text": DOOR, "value": "door", **about}, {"text": " "}]
    for given in (facts, [facts[0] | {"importance": 0.9}]):
        stored = memory.store_many(given)
        for one in stored.results:
            texts = [one.error[one.index :]] if isinstance(one, Rejected) else [one.action, *one.changed, *one.ignored]
            yield stored, texts
    alike = [{"text": f"The green tea {verb} in the tin box on the left of the kitchen."} for verb in ("is", "was")]
    yield memory.store_many(alike), []
    episode: dict[str, Any] = {"kind": "episodic", "session": "visit", "turn": 1}
    memory.store("Mira opened the door.", durability="persistent", **episode)
    memory.store("Mira was born in May.", durability="permanent", **episode)
    yield memory.facts(), []
    imported = memory.import_records([{"relation": RELATION}, {"text": ""}])
    yield imported, [one.error if isinstance(one, Rejected) else one.action for one in imported.results]


def find(memory: Memory) -> Iterator[tuple[Answer, list[str]]]:
    """Recall facts, with explanations."""
    many = memory.recall_many([{"query": "Where is the key?", "explain": True, "limit": 1}, {"query": " "}])
    for answer in many.answers:
        if isinstance(answer, Rejected):
            yield many, [answer.error]
        else:
            yield many, [f"{one.text} {one.score:.1f} {one.explain and one.explain.fit}" for one in answer.results]
            yield many, [f"{one.rule} {one.rank or 0}" for one in answer.left_out or []]
    injected = memory.context("Where is the key?", explain=True)
    yield injected, [f"{one.line} {one.relevance or 0:.1f} {one.summarised}" for one in injected.facts]
    shelf = memory.lookup("key").results[0].id
    why = memory.recall("Where is the key?", why=shelf)
    yield why, [] if why.why is None else [why.why.text, *why.why.words.shared]
    yield memory.lookup("key"), []
    yield memory.fact(shelf), []


def compare(memory: Memory) -> Iterator[tuple[Answer, list[str]]]:
    """Look at contradictions, links, near-duplicates and relations."""
    found = memory.contradictions()
    (pair,) = found.contradictions
    yield found, [pair.entity, f"{pair.found_at:%Y}", *(side.value for side in pair.facts)]
    shelf, door = (side.id for side in pair.facts)
    memory.link(shelf, door, "RELATED_TO")
    near = memory.neighbours(shelf)
    yield near, [*(one.text for one in near.facts), *(f"{link.type} {link.strength:.1f}" for link in near.links)]
    groups = memory.consolidate()
    yield groups, [f"{one.keep.text} {other.similarity:.2f}" for one in groups.groups for other in one.merge]
    yield memory.curve(shelf), []
    yield memory.timeline("key", "place"), []
    yield memory.resolve([shelf, door], both=True), []
    yield memory.relate("Mira", "Leipzig", "lives in", pinned=True), []
    yield memory.relations(decayed=None), []
    yield memory.decay_relations(dry_run=True), []


def operate(memory: Memory) -> Iterator[tuple[Answer, list[str]]]:
    """Make a branch, run passes, and look ahead."""
    memory.branch(30)
    made = memory.branches()
    yield made, [f"{one.branch} {one.facts + (one.days or 0)} {one.complete}" for one in made.branches]
    for pass_ in (
        memory.decay(),
        memory.prune(dry_run=True),
        memory.drop_branch(30),
        memory.janitor(),
        memory.doctor(),
    ):
        yield pass_, []
    listed = memory.shards()
    yield listed, [f"{one.schema_name} {one.number + one.namespaces + one.facts + one.bytes}" for one in listed.shards]
    moved = memory.move_namespace(0)
    yield moved, [f"{moved.namespace} {moved.old + moved.new + moved.rows + moved.held_ms}"]
    runs = memory.runs()
    yield runs, [f"{one.work} {one.started_at:%Y} {(one.processed or 0) + 1}" for one in runs.runs]
    held = memory.held()
    yield held, [f"{one.text} {one.reason} {one.ended_at:%Y}" for one in held.held]
    forecast = memory.forecast(days=366, ending=366)
    yield forecast, [f"{day.at:%Y} {day.forgotten + day.held}" for day in forecast.days]
    yield forecast, [f"{one.change} {one.text}" for day in forecast.days for one in day.facts]
    yield memory.janitor_snapshot(), []
    yield memory.stats(), []


def forget(memory: Memory) -> Iterator[tuple[Answer, list[str]]]:
    """Forget and restore facts, of which one is unknown."""
    preview = memory.forget(tag="home", dry_run=True)
    yield preview, [f"{one.action} {one.text}" for one in preview.results]
    ids = [one.id for one in preview.results[:1]]
    forgotten = memory.forget([*ids, UNKNOWN])
    yield forgotten, [f"{one.action} {one.reason}" for one in forgotten.results]
    restored = memory.restore([*ids, UNKNOWN])
    yield restored, [f"{one.action} {one.error}" for one in restored.results or []]
    memory.forget(ids)
    selected = memory.restore(since=datetime.now(UTC) - timedelta(hours=1), reason="asked")
    yield selected, [one.action for one in selected.errors or []]
