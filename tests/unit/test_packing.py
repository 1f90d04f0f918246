"""Packed texts are restored exactly in any language, and old packed texts stay readable."""

import hashlib
from importlib import resources
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workers.storage import packing

FACT: dict[str, Any] = packing.USUAL | {
    "text": "Renée's spare key hangs behind the boiler.",
    "created_at": "2025-01-02T17:40:00.123456+00:00",
    "valid_from": "2025-01-02T17:40:00.123456+00:00",
    "content_salience": 0.0,
    "forgotten_reason": "faded",
    "forgotten_by": "7f0c34a5-7a3c-4c5c-8d1c-0f2f6f9fb1a7",
}
STATE: dict[str, Any] = packing.USUAL_STATE | {
    "segment": 40,
    "base": 1.0,
    "halvings": 0,
    "expires_at": "2025-02-01T17:40:00.123456+00:00",
    "last_seen_at": "2025-01-02T17:40:00.123456+00:00",
    "last_confirmed_at": "2025-01-03T00:00:00+00:00",
}


def test_packed_texts_are_restored() -> None:
    fact = FACT | {"tags": ["a", "b"], "session": 7, "source_date": "1066-10-14T09:00:00+00:00", "metadata": {"é": [1]}}
    state = STATE | {"expires_at": "infinity", "pinned_until": "infinity", "spells": "\\x00ff"}
    beside = {"events": [{"at": "2025-03-01T00:00:00.5+00:00", "what": "edited", "details": {"n": 1}}], "links": []}
    unpacked = packing.unpack(packing.pack(fact, state, beside))
    beside["events"][0]["at"] = "2025-03-01T00:00:00.500000+00:00"
    assert unpacked == (fact, state, {"events": beside["events"]})


@given(st.text(max_size=400))
def test_any_text_comes_back(text: str) -> None:
    fact, state, beside = packing.unpack(packing.pack(FACT | {"text": text}, STATE, {}))
    assert (fact, state, beside) == (FACT | {"text": text}, STATE, {})


said_or_not = st.none() | st.text(max_size=9)


@given(
    st.fixed_dictionaries(dict.fromkeys(("category", "entity", "key", "value", "source"), said_or_not)),
    st.lists(st.text(max_size=3), max_size=2),
    st.lists(st.integers() | st.text(max_size=3), max_size=3),
)
def test_what_a_fact_says_is_read_alone(about: dict[str, Any], tags: list[str], sessions: list[int | str]) -> None:
    fact = FACT | about | {"tags": tags, "session": sessions[0] if sessions else None, "turn": 3 if sessions else None}
    again = [{"session": one, "said_at": "2025-03-01T00:00:00+00:00"} for one in sessions[1:]]
    packed = packing.pack(fact, STATE, {"occurrences": again})
    unpacked, _, _ = packing.unpack(packed)
    said = packing.said(packed)
    assert said.pop("sessions") == (sessions or [None])
    assert said == {name: unpacked[name] for name in ("text", "kind", "role", "turn", *packing.ABOUT)}


def test_an_ordinary_fact_takes_little_room() -> None:
    text = "She would rather walk for an hour in the rain than wait ten minutes for a bus that may never come."
    state = STATE | {"last_confirmed_at": FACT["created_at"], "decay_class": "stable", "decay_class_source": "auto"}
    assert len(packing.pack(FACT | {"text": text}, state, {})) < len(text) + 10


def test_texts_packed_by_earlier_versions_can_be_read() -> None:
    words = resources.files("workers.storage").joinpath("frequent_words.txt").read_bytes()
    assert hashlib.sha256(words + packing.SKELETON.encode()).hexdigest()[:16] == "f633a97b86fe1506"


def test_a_word_is_marked_where_it_is_looked_for() -> None:
    words = ["key", "boiler", "behind", "hang"]
    marks = packing.marks(words)
    assert len(marks) == packing.BITS_A_WORD * len(words)
    assert all(marks[place % len(marks)] == "1" for place in packing.places(words))
    assert len(packing.marks([])) == packing.BITS_A_WORD
    assert len(packing.marks([str(i) for i in range(10_000)])) == packing.MOST_BITS
