"""Arbitrary imports: each line becomes facts or is refused with a message."""

import gzip
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import JSON, examples, spoilt

from api import archive_import
from api.archive_import import BEGINS, CUT_OFF, NAME, BadLine, import_file, parse
from api.contrib import foreign
from workers.errors import InvalidInputError
from workers.validation.archived import archived
from workers.validation.facts import new_fact

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AT = "2025-01-01T00:00:00Z"
IDS = ("0198c0de-0000-7000-8000-000000000001", "0198c0de-0000-7000-8000-000000000002")

OPENMEMORY = {
    "id": "m1", "content": "Mira moved.", "user_id": "mira", "primary_sector": "semantic", "tags": '["a", "b"]',
    "metadata": '{"a": 1}', "created_at": 1_700_000_000_000, "last_seen_at": 1_700_000_000_000, "salience": 0.4,
    "coactivations": 1,
}  # fmt: skip
MEM0 = {
    "id": "m1", "memory": "Mira moved.", "data": {"text": "x"}, "user_id": "mira", "agent_id": "a", "run_id": "r",
    "category": "x", "categories": ["home"], "tags": ["x"], "metadata": {"a": 1}, "created_at": AT, "updated_at": AT,
    "expiration_date": "2030-01-01", "role": "user",
}  # fmt: skip
STATE = {
    "base": 0.5, "coactivations": 0, "last_seen_at": AT, "confidence": 1.0, "last_confirmed_at": AT,
    "expires_at": "infinity", "decay_class": "stable", "decay_class_source": "auto", "halvings": 0, "branch": 0,
    "pinned_until": None, "kept_lifetime": None, "encoded_at": None, "occurred": None, "outrun_at": None,
}  # fmt: skip
FACT = {
    "id": IDS[0], "text": "Mira moved.", "kind": "semantic", "session": "s", "turn": 1, "source_date": AT,
    "created_at": AT, "entity": "Mira", "key": "home", "value": "Halle", "tags": ["a"], "importance": 0.5,
    "metadata": {"a": 1}, "valid_from": AT, "valid_until": None, "namespace": "mira", "state": STATE,
    "events": [{"at": AT, "what": "pinned", "details": {}}],
}  # fmt: skip
BESIDE = (
    {"link": {"source": IDS[0], "target": IDS[1], "type": "PART_OF", "strength": 1, "created_at": AT}},
    {"contradiction": {"fact": IDS[0], "other": IDS[1], "found_at": AT}},
    {"likeness": {"fact": IDS[0], "other": IDS[1], "similarity": 0.9, "found_at": AT}},
    {"document": {"path": "memory/a.md", "folder": "/x", "digest": "\\x00", "read_at": AT}},
    {
        "relation": {
            "source": "a",
            "target": "b",
            "type": "t",
            "initial_weight": 1,
            "last_observed": AT,
            "created_at": AT,
        }
    },
    {"wish": {"salt": IDS[0], "digest": "0" * 64, "fact": IDS[0], "forgotten_at": AT, "reason": "asked"}},
    {"own": {"salt": IDS[0], "turns": 1, "settings": {}}},
    {"event": {"fact": IDS[0], "after": AT, "at": AT, "what": "pinned", "details": {}}},
)

CONTENTS = st.one_of(
    st.binary(),
    st.binary().map(lambda end: b"\x1f\x8b" + end),
    st.binary().map(gzip.compress),
    st.text().map(lambda one: gzip.compress(one.encode())[:-4]),
    JSON.map(json.dumps).map(str.encode),
)


def taken(line: bytes) -> bool:
    """Return whether a line of an import is accepted; it must be accepted or refused with a message."""
    refused = ""
    try:
        said = parse(line)
        if said is None:
            return False
        said.pop("namespace", None)
        archived(said, 10_000) if "state" in said or "text" not in said else new_fact(said, 10_000)
    except InvalidInputError as error:
        refused = str(error) or pytest.fail(f"refused without a word: {line!r}")
    assert len(refused) < 10_000, line
    return not refused


@examples(150)
@given(
    line=st.one_of(st.binary(max_size=60), JSON.map(lambda one: json.dumps(one).encode()), st.text().map(str.encode))
)
def test_any_line_is_a_fact_or_refused(line: bytes) -> None:
    taken(line)


@examples(200)
@given(line=spoilt(FACT), state=spoilt(STATE), both=st.booleans())
def test_any_archived_fact_is_one_or_refused(line: dict[str, Any], state: dict[str, Any], both: bool) -> None:
    taken(json.dumps(line | ({"state": state} if both else {})).encode())


@examples(200)
@given(data=st.data())
def test_any_other_record_is_accepted_or_refused(data: st.DataObject) -> None:
    ((name, right),) = data.draw(st.sampled_from(BESIDE)).items()
    taken(json.dumps({name: data.draw(st.one_of(JSON, spoilt(right)))}).encode())


def test_valid_input_is_accepted() -> None:
    for one in (FACT, *BESIDE):
        assert taken(json.dumps(one).encode())


@pytest.mark.parametrize(("product", "right"), [("openmemory", OPENMEMORY), ("mem0", MEM0)])
@examples(150)
@given(data=st.data())
def test_any_export_of_another_product_has_a_line_for_each_of_its_memories(
    product: str, right: dict[str, Any], data: st.DataObject
) -> None:
    records = data.draw(st.lists(st.one_of(JSON, spoilt(right), st.just(right)), min_size=1, max_size=4))
    with foreign.lines(io.BytesIO(json.dumps(records).encode()), product, NOW) as written:
        lines = written.read().splitlines()
    assert len(lines) == len(records)
    for line, record in zip(lines, records, strict=True):
        assert taken(line) or record is not right


@pytest.mark.parametrize(
    "record",
    [{"memory": "a", "categories": True}, {"memory": "a", "metadata": [1]}, {"memory": "a", "data": 1, "tags": 2.5}],
)
def test_fields_of_any_other_type_are_left_out_or_refused(record: dict[str, Any]) -> None:
    with foreign.lines(io.BytesIO(json.dumps([record]).encode()), "mem0", NOW) as lines:
        (line,) = lines
    assert taken(line) == ("metadata" not in record)


def test_an_instant_beyond_all_calendars_is_refused() -> None:
    record = f'[{{"content": "a", "created_at": {10**400}}}]'.encode()
    with foreign.lines(io.BytesIO(record), "openmemory", NOW) as lines:
        (line,) = lines
    assert not taken(line)


@pytest.mark.parametrize(
    ("memory", "right"),
    [
        (r'{"memory": "a", "score": NaN}', True),
        (r'{"memory": "a", "metadata": {"b": NaN}}', False),
        (r'{"memory": "a", "metadata": {"b": -1e400}}', False),
        (r'{"memory": "a", "metadata": {"b": 18446744073709551616}}', True),
        (r'{"memory": "cut amid an emoji \ud83d\u2026"}', False),
        (r'{"memory": "\udc00\ud800"}', False),
    ],
)
def test_an_invalid_memory_of_a_document_affects_no_other(memory: str, right: bool) -> None:
    export = f'[\n{{"memory": "before"}},\n{memory},\n{{"memory": "behind"}}\n]'.encode()
    with foreign.lines(io.BytesIO(export), "mem0", NOW) as lines:
        assert [taken(line) for line in lines] == [True, right, True]


@pytest.mark.parametrize("value", ["1" + "0" * 5_000, "[" * 100_000], ids=["digits", "brackets"])
def test_a_document_with_a_value_that_python_cannot_read_is_refused(value: str) -> None:
    export = f'[\n{{"memory": "before"}},\n{{"memory": {value}}}\n]'.encode()
    refused = foreign.lines(io.BytesIO(export), "mem0", NOW)
    with pytest.raises(InvalidInputError, match="no JSON behind its memory 1"), refused:
        pass


def test_lines_with_a_number_that_python_cannot_read_are_reported() -> None:
    export = f'[\n{{"memory": 1{"0" * 5_000}}}\n]'.encode()
    with foreign.lines(io.BytesIO(export), "mem0", NOW) as lines:
        assert [taken(line) for line in lines] == [False] * 3


def test_a_document_that_ceases_to_be_utf8_is_refused() -> None:
    text = json.dumps([MEM0] * 2_000, indent=1).encode()
    refused = foreign.lines(io.BytesIO(text[:-1] + b"\xff]"), "mem0", NOW)
    with pytest.raises(InvalidInputError, match="no UTF-8 text"), refused:
        pass


def test_an_export_that_was_gzipped_and_then_damaged_is_refused() -> None:
    damaged = foreign.lines(io.BytesIO(gzip.compress(b"[]")[:10] + b"\xff" * 8), "mem0", NOW)
    with pytest.raises(InvalidInputError, match="gzipped or not"), damaged:
        pass


@pytest.mark.parametrize("product", ["openmemory", "mem0"])
@examples(150)
@given(content=CONTENTS)
def test_any_bytes_are_an_export_or_refused(product: str, content: bytes) -> None:
    try:
        with foreign.lines(io.BytesIO(content), product, NOW) as lines:
            for line in lines:
                taken(line)
    except InvalidInputError as refused:
        result = str(refused)
    else:
        result = "export"
    assert "export" in result


class Workers:
    """A client whose tasks are noted in order: what is sent, and when it is done."""

    namespace = "default"

    def __init__(self) -> None:
        self.noted: list[str] = []

    def send_many(self, facts: list[Any], **_: Any) -> Any:
        return self._sent("facts", len(facts))

    def ask(self, _task: str, given: dict[str, Any]) -> Any:
        return self._sent(" ".join(kind for one in given["records"] for kind in one), len(given["records"]))

    def wait(self, sent: tuple[str, int], _: float) -> dict[str, Any]:
        self.noted.append(f"{sent[0]} done")
        return {"results": [{"action": "added"}] * sent[1]}

    def _sent(self, what: str, count: int) -> tuple[str, int]:
        self.noted.append(what)
        return what, count


def test_facts_imported_again_are_stored_before_what_stands_beside_them() -> None:
    file = [{"own": {"turns": 1}}, FACT, FACT | {"id": IDS[1]}, BESIDE[0]]
    workers, rejected = Workers(), []
    lines = io.BytesIO(b"".join(json.dumps(one).encode() + b"\n" for one in file))
    done = import_file(workers, lines, None, rejected.append, lambda _: None, again=True)  # type: ignore[arg-type]  # a stand-in
    assert workers.noted == ["own", "own done", "facts", "facts done", "link", "link done"]
    assert (done.lines, done.offset, done.rejected, rejected) == (4, len(lines.getvalue()), 0, [])


def test_long_lines_are_stored_in_more_batches() -> None:
    long = FACT | {"metadata": {"letter": "x" * (archive_import.WINDOW_BYTES // 2)}}
    workers, rejected = Workers(), []
    lines = io.BytesIO((json.dumps(long).encode() + b"\n") * 5)
    done = import_file(workers, lines, None, rejected.append, lambda _: None, again=True)  # type: ignore[arg-type]  # a stand-in
    assert workers.noted.count("facts") == 3
    assert (done.lines, done.offset, done.rejected, rejected) == (5, len(lines.getvalue()), 0, [])


@pytest.mark.parametrize(
    ("lines", "place", "fault"),
    [
        ([BEGINS, FACT, BEGINS, FACT, {NAME: "ends", "lines": 1}], 3, CUT_OFF),
        ([FACT, {NAME: "ends", "lines": 2}], 2, "the archive had 2 lines, and 1 of them are here; export it again."),
    ],
    ids=["the end of the first of two", "the beginning"],
)
def test_an_archive_that_lacks_lines_is_reported_wherever_they_were(
    lines: list[dict[str, Any]], place: int, fault: str
) -> None:
    bad: list[BadLine] = []
    file = io.BytesIO(b"".join(json.dumps(one).encode() + b"\n" for one in lines))
    import_file(Workers(), file, None, bad.append, lambda _: None)  # type: ignore[arg-type]  # a stand-in
    assert bad == [BadLine(place, fault)]
