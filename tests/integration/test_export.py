"""Exports can be imported, and have the decay state at an instant."""

import hashlib
from typing import Any

import numpy as np
import pytest
from memory import Memory, day, wait_for

from workers.admin import export
from workers.admin.export import BATCH
from workers.core import tiers
from workers.errors import DamagedError, NotFoundError
from workers.memory import estimate
from workers.validation.facts import DERIVED

GIVEN = {
    "text": "Ana takes green tea.", "category": "habit", "entity": "Ana", "key": "tea", "value": "green",
    "summary": "tea", "source": "diary", "tags": ["drinks", "noon"], "importance": 0.8, "kind": "episodic",
    "decay_class": "stable", "session": 7, "turn": 3, "role": "tool", "confidence": 0.9, "coactivations": 2,
    "strength": 0.6, "source_date": day(-3), "created_at": day(-2), "last_seen_at": day(-1),
}  # fmt: skip


def exported(memory: Memory, at: float = 0, namespace: str | None = "default") -> list[dict[str, Any]]:
    return [line for line in export.export(memory.context, namespace, day(at)) if "text" in line]


def importable(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name not in {*DERIVED, "namespace", "state", "events"}}


def test_every_field_that_was_given_is_exported(memory: Memory) -> None:
    memory.store(GIVEN)
    (line,) = exported(memory)
    assert {name: line[name] for name in GIVEN} == GIVEN | {"strength": pytest.approx(0.6)}


def test_an_imported_export_is_exported_equally(memory: Memory, twin: Memory) -> None:
    memory.store(GIVEN, "Tea at four.", {"text": "Nuts are forbidden.", "decay_class": "permanent"})
    memory.touch(memory.ids("nuts")[0], at=2)
    lines = exported(memory, 5)
    twin.store(*[importable(line) for line in lines], at=5)
    again = exported(twin, 5)
    assert [importable(line) for line in again] == [
        importable(line) | {"strength": pytest.approx(line["strength"])} for line in lines
    ]


def test_what_is_counted_of_each_use_is_exported_by_both_of_its_names(memory: Memory) -> None:
    id_ = memory.add("Tea  at FOUR.", decay_class="durable")
    (before,) = exported(memory)
    assert (before["recall_count"], before["last_accessed_at"], before["last_accessed"]) == (0, None, None)
    memory.touch(id_, at=2)
    (line,) = exported(memory, 3)
    assert (line["recall_count"], line["access_count"]) == (1, 1)
    assert (line["last_accessed_at"], line["last_accessed"]) == (day(2), day(2).timestamp())
    assert line["last_confirmed_at"] == day(2)
    assert line["normalized_hash"] == hashlib.sha256(b"tea at four.").hexdigest()


def test_the_outcome_of_a_fact_is_as_of_the_instant(memory: Memory) -> None:
    memory.add("Tea at four, said Ana. Cake at five, said Ben.", decay_class="durable")
    memory.decay(10)
    (line,) = exported(memory, 10)
    curve = tiers.curve(np.array([0.5]), np.array([0]))
    retention = float(tiers.retention(curve, np.array([10.0]))[0])
    assert line["retention"] == pytest.approx(retention)
    assert line["salience"] == pytest.approx(0.5 * retention)
    assert line["effective_confidence"] == pytest.approx(0.5 ** (10 / 180))
    assert (line["tier"], line["fidelity"], line["dims"], line["expires_at"]) == ("cold", "pooled", 128, day(90))


def test_soft_decay_shows_in_the_effective_confidence(memory: Memory) -> None:
    memory.add("Tea at four.", decay_class="durable")
    (line,) = exported(memory, 67.5 + 1.5 / 24)
    assert line["effective_confidence"] == pytest.approx(0.25 * 0.5 ** ((67.5 + 1.5 / 24) / 180))


def test_a_fact_is_summarised_only_once_it_fades(memory: Memory) -> None:
    memory.add("Tea at four, said Ana. Cake at five, said Ben.")
    assert exported(memory, 1)[0]["decay_summary"] is None
    assert exported(memory, 30)[0]["decay_summary"] == "said tea ana cake ben"
    memory.decay(60)
    assert exported(memory, 60)[0]["decay_summary"] == "said tea ana"


def test_a_permanent_fact_never_cools(memory: Memory) -> None:
    memory.add("The bank's number is 5550-1.", decay_class="permanent")
    memory.decay(400)
    (line,) = exported(memory, 400)
    assert (line["tier"], line["retention"], line["fidelity"]) == ("warm", 1.0, "full")
    assert memory.ask("bank number", at=400).results[0].tier == "warm"


def test_forgotten_facts_are_exported_with_the_reason(memory: Memory) -> None:
    memory.add("The ticket is in the car.", decay_class="checkpoint")
    memory.decay(1)
    (line,) = exported(memory, 2)
    assert (line["forgotten_at"], line["forgotten_reason"], line["fidelity"]) == (day(1), "expired", "fingerprint")
    assert (line["dims"], line["due_at"]) == (0, None)


def test_superseded_facts_are_exported_with_their_validity_and_successor(memory: Memory) -> None:
    old = memory.add("Tea at four.")
    memory.store({"text": "Tea at five.", "supersedes": str(old)}, at=3)
    before, after = exported(memory, 4)
    assert (before["valid_from"], before["valid_until"], before["superseded_at"]) == (day(0), day(3), day(3))
    assert (before["superseded_by"], after["supersedes_id"]) == (after["id"], old)
    assert (after["valid_from"], after["valid_until"], after["superseded_at"]) == (day(3), None, None)


def test_a_pinned_fact_is_exported_as_it_stays_until_its_pin_ends(memory: Memory) -> None:
    id_ = memory.add("Tea at four.", decay_class="durable", confidence=0.8)
    memory.pin(id_, at=1, until=50)
    (line,) = exported(memory, 40)
    assert (line["pinned"], line["pinned_until"], line["retention"], line["tier"]) == (True, day(50), 1, "warm")
    assert (line["effective_confidence"], line["expires_at"]) == (0.8, day(140))
    (line,) = exported(memory, 60)
    assert (line["pinned"], line["tier"], line["retention"] < 1) == (False, "cold", True)


def test_a_namespace_is_exported_alone_or_all_together(memory: Memory) -> None:
    memory.add("Tea at four.", namespace="ours")
    memory.add("Cake on Sunday.", namespace="theirs")
    assert [line["text"] for line in exported(memory, namespace="ours")] == ["Tea at four."]
    assert [line["namespace"] for line in exported(memory, namespace=None)] == ["ours", "theirs"]
    with pytest.raises(NotFoundError, match="there is no 'unknown'"):
        exported(memory, namespace="unknown")


def test_an_export_shows_one_state_however_long_it_is_read(memory: Memory) -> None:
    memory.store(*[f"Guest number {number}." for number in range(BATCH + 5)])
    lines = export.export(memory.context, "default", day(0))
    first = next(lines)
    memory.store("A guest came later.")
    memory.rows("update facts set text = 'changed' where id <> %s", first["id"])
    rest = list(lines)
    assert len(rest) == BATCH + 4
    assert {line["text"] for line in rest} & {"changed", "A guest came later."} == set()


def test_an_export_that_would_lack_a_fact_is_refused(memory: Memory) -> None:
    memory.store("Tea at four.", "Cake on Sunday.")
    other = memory.add("The lamp is green.", namespace="other")
    memory.rows("delete from activity where fact = %s", memory.ids("tea")[0])
    with pytest.raises(DamagedError, match=r"1 facts have no activity.*`ebb doctor"):
        exported(memory)
    assert [line["id"] for line in exported(memory, namespace="other")] == [other]
    memory.examine(0, mend=True)
    assert len(exported(memory)) == 2


def test_an_export_that_is_broken_off_closes_its_connection(memory: Memory) -> None:
    memory.store("Tea at four.", "Cake on Sunday.")
    idle = "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in trans%%'"
    lines = export.export(memory.context, "default", day(0))
    next(lines)
    assert memory.value(idle) == 1
    del lines
    wait_for(lambda: memory.value(idle) == 0)


def test_the_salience_of_content_is_exported_and_comes_back(memory: Memory, twin: Memory) -> None:
    memory.add("Tea at four.", salience=0.125)
    memory.add("Mira moved to Leipzig in March.", role="user")
    (given, estimated) = sorted(exported(memory), key=lambda line: line["content_salience"] != 0.125)
    assert (given["content_salience"], given["salience_given"]) == (0.125, True)
    assert 0 < estimated["content_salience"] < 1
    assert not estimated["salience_given"]
    twin.import_records([given, estimated | {"content_salience": None}])
    assert {line["text"]: line["content_salience"] for line in exported(twin)} == {
        given["text"]: 0.125,
        estimated["text"]: estimated["content_salience"],
    }


def test_facts_of_earlier_versions_get_the_salience_of_their_content_once(memory: Memory) -> None:
    memory.add("Mira moved to Leipzig in March.")
    (before,) = exported(memory)
    memory.rows("update facts set content_salience = null")
    assert [estimate.fill(memory.context) for _ in range(2)] == [1, 0]
    assert exported(memory) == [before]
