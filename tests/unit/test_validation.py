"""Validation of facts and parameters: every invalid input gives one clear error, the same at every interface."""

import math
import re
from datetime import UTC, date, datetime
from typing import Annotated, Any
from uuid import UUID, uuid4

import pytest
from ebb.contract.documents import NewItem, Upload
from ebb.contract.facts import Edit, NewFact, Store
from ebb.contract.faults import fault as fault_of
from ebb.contract.recall import Recall
from ebb.contract.retention import Reinforce
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from pydantic import Field, TypeAdapter, ValidationError

from workers import validation
from workers.errors import InvalidInputError
from workers.validation.archived import ArchivedFact, archived
from workers.validation.facts import new_fact, own_words

LIMIT = 65_536
AT = "2025-03-01T10:00:00Z"
ONE, OTHER = "00000000-0000-7000-8000-000000000001", "00000000-0000-7000-8000-000000000002"
RELATION = {
    "source": "Mira", "target": "Halle", "type": "lives_in", "initial_weight": 1, "last_observed": AT, "created_at": AT,
}  # fmt: skip
NUL, SURROGATE = "a\0b", "a\ud800b"
properties = examples(100)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text(st.characters(exclude_categories=[]), max_size=12)
    | st.sampled_from(["2025-01-01", "0001-01-01T00:00:00+14:00", NUL, SURROGATE]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def fact(**fields: Any) -> NewFact:
    return new_fact({"text": "Alice likes tea", **fields}, LIMIT)


def refused(**fields: Any) -> str:
    """Return why a fact with these fields is refused."""
    with pytest.raises(InvalidInputError) as refusal:
        fact(**fields)
    return str(refusal.value)


def taken_or_refused(given: Any) -> tuple[NewFact | None, str]:
    try:
        return new_fact(given, LIMIT), ""
    except InvalidInputError as refusal:
        return None, str(refusal)


def refused_instant(given: Any) -> str:
    with pytest.raises(InvalidInputError) as refusal:
        validation.instant(given, "--now")
    return str(refusal.value)


def test_a_fact_that_supersedes_itself_is_refused() -> None:
    own = "018f6b2e-7c3d-7000-8000-000000000001"

    assert refused(id=own, supersedes=own).startswith(f"supersedes: {own} is the fact's own id")
    assert refused(supersedes="seven").startswith("supersedes: ")


def test_a_text_alone_is_a_fact_with_the_documented_defaults() -> None:
    given = fact()

    assert (given.text, given.kind, given.tags) == ("Alice likes tea", "semantic", None)
    assert (given.salience, given.importance, given.confidence) == (0.5, 0.5, 1.0)
    assert (given.id, given.session, given.turn, given.decay_class, given.source_date) == (None,) * 5


def test_a_fact_with_every_field_is_taken_as_it_is() -> None:
    fields: dict[str, Any] = {
        "id": "018f6b2e-7c3d-7000-8000-000000000001",
        "kind": "episodic",
        "durability": "persistent",
        "session": "monday",
        "turn": 3,
        "source_date": "2025-03-01T10:00:00+01:00",
        "created_at": "2025-03-01",
        "last_seen_at": 1_740_000_000,
        "category": "preference",
        "entity": "Alice",
        "key": "drink",
        "value": "tea",
        "summary": "tea",
        "source": "chat",
        "metadata": {"seen": [1, 2.5, None]},
        "tags": ["home", "drinks"],
        "role": "system",
        "importance": 0.9,
        "salience": 0,
        "strength": 1,
        "coactivations": 7,
        "confidence": 0.25,
        "decay_class": "durable",
        "supersedes": "018f6b2e-7c3d-7000-8000-000000000002",
        "decay_class_source": "auto",
        "again": True,
        "apart": True,
        "valid_from": "2025-03-01T09:00:00Z",
        "valid_until": "2999-01-01",
    }

    given = fact(**fields).model_dump()

    assert given.keys() == fields.keys() | {"text"}
    changed = {"id", "source_date", "created_at", "last_seen_at", "supersedes", "valid_from", "valid_until"}
    assert {name: given[name] for name in fields.keys() - changed} == {
        name: fields[name] for name in fields.keys() - changed
    }
    assert (given["id"], given["supersedes"]) == (UUID(fields["id"]), UUID(fields["supersedes"]))
    assert given["source_date"] == datetime(2025, 3, 1, 9, tzinfo=UTC)
    assert given["created_at"] == datetime(2025, 3, 1, tzinfo=UTC)
    assert given["valid_from"] == datetime(2025, 3, 1, 9, tzinfo=UTC)
    assert given["valid_until"] == datetime(2999, 1, 1, tzinfo=UTC)
    assert given["last_seen_at"] == datetime(2025, 2, 19, 21, 20, tzinfo=UTC)


@pytest.mark.parametrize("given", [None, [], "text", 5, [{"text": "a"}], True])
def test_values_other_than_objects_are_refused(given: Any) -> None:
    with pytest.raises(InvalidInputError, match="a JSON object with at least a `text`; given"):
        new_fact(given, LIMIT)


def test_a_missing_text_is_named() -> None:
    with pytest.raises(InvalidInputError, match="text: field required"):
        new_fact({"entity": "Alice"}, LIMIT)


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u00a0\u2003", "<memory-context>old</memory-context>"])
def test_empty_and_blank_texts_are_refused(text: str) -> None:
    assert refused(text=text).startswith("text: cannot store empty fact text; give")


@pytest.mark.parametrize("text", [5, None, ["a"], {"a": 1}, True])
def test_a_text_of_another_type_is_refused(text: Any) -> None:
    assert refused(text=text).startswith("text: input should be a valid string; given")


def test_the_limit_of_a_text_is_in_bytes_and_is_what_is_allowed() -> None:
    assert fact(text="é" * (LIMIT // 2)).text
    assert refused(text="é" * (LIMIT // 2) + "x") == (
        "text: has 65537 bytes, more than the limit of 65536 (EBB_MAX_TEXT); split it."
    )


def test_injected_context_is_not_part_of_a_fact_or_its_length() -> None:
    block = f"<memory-context>{'x' * LIMIT}</memory-context>"

    assert fact(text=f"{block} New. ").text == "New."


@pytest.mark.parametrize("field", ["text", "session", "category", "entity", "key", "value", "summary", "source"])
def test_nul_bytes_and_lone_surrogates_are_refused_in_every_text(field: str) -> None:
    assert refused(**{field: NUL}).startswith(f"{field}: must not contain NUL characters; remove them; given")
    assert refused(**{field: SURROGATE}).startswith(f"{field}: must not contain lone surrogates")


@pytest.mark.parametrize("tags", [[NUL], [SURROGATE], NUL, f"fine,{SURROGATE}"])
def test_nul_bytes_and_lone_surrogates_are_refused_in_tags(tags: Any) -> None:
    assert "must not contain" in refused(tags=tags)


@pytest.mark.parametrize(
    "accents",
    [
        "\u0301\u0323",
        pytest.param("\u0301\uff9e", id="decomposed into an accent"),
        pytest.param("\u0730\u0731" * 400 + "\u2060\u0640", id="between others that are left out"),
    ],
)
@pytest.mark.parametrize("field", ["text", "value", "summary"])
def test_more_accents_than_can_be_brought_in_order_soon_are_refused(accents: str, field: str) -> None:
    text = f"e{accents * 1_000}"[:1_002]

    assert refused(**{field: text}).startswith(f"{field}: must not have more than 1,000 accents in a row; remove some")
    for few in text[:-1], f"{text[:600]}e{text[1:600]}":
        assert getattr(fact(**{field: few}), field) == few


def test_no_other_text_has_more_accents_than_can_be_brought_in_order_soon() -> None:
    many = "e" + "\u0301\u0323" * 1_000
    path = {"path": ["notes"], "key": "tea", "document": "{}"}
    with pytest.raises(ValidationError, match="accents in a row"):
        NewItem.model_validate(path | {"text": many})
    with pytest.raises(ValidationError, match="accents in a row"):
        Upload(path="notes/tea.md", text=many)
    with pytest.raises(ValidationError, match="accents in a row"):
        Recall(query=many)


def test_characters_outside_the_basic_plane_are_not_surrogates() -> None:
    assert fact(text="😀 𝄞").text == "😀 𝄞"


@pytest.mark.parametrize("field", ["importance", "salience", "strength", "confidence"])
@pytest.mark.parametrize(
    "given", [math.nan, math.inf, -math.inf, 1e300, 10**400, -0.01, 1.01, "much", "0.5", True, [], {}]
)
def test_numbers_outside_0_to_1_are_refused(field: str, given: Any) -> None:
    assert refused(**{field: given}).startswith(f"{field}: input should be ")


@pytest.mark.parametrize("field", ["turn", "coactivations"])
@pytest.mark.parametrize("given", [-1, 2**31, 10**400, 1.5, math.nan, math.inf, "first", "1", True, []])
def test_invalid_counts_are_refused(field: str, given: Any) -> None:
    assert refused(**{field: given}).startswith(f"{field}: input should be ")


@pytest.mark.parametrize("given", ["s1", "5", 5, 0, -3, 2**63 - 1])
def test_a_session_is_a_text_or_a_number_and_stays_it(given: str | int) -> None:
    assert fact(session=given).session == given
    assert type(fact(session=given).session) is type(given)


@pytest.mark.parametrize("given", [True, 1.5, [], {}, 2**63, -(2**63) - 1, "s" * 1_025])
def test_a_session_that_is_neither_or_too_much_is_refused_once(given: Any) -> None:
    assert refused(session=given).startswith("session: must ")
    assert refused(session=given).count("session:") == 1


def test_an_unknown_field_is_refused_with_the_known_ones() -> None:
    assert refused(colour="red").startswith("colour: is no field of a fact; known are text, id, kind, durability")


def test_all_faults_of_a_fact_are_named_at_once() -> None:
    message = refused(salience=2, kind="dream", colour="red")

    assert all(f"{field}: " in message for field in ("salience", "kind", "colour"))


@pytest.mark.parametrize("field", ["source_date", "created_at", "last_seen_at"])
def test_a_naive_instant_is_refused(field: str) -> None:
    assert refused(**{field: "2025-03-01T10:00:00"}) == (
        f"{field}: needs a time zone, such as Z or +01:00 at its end; given '2025-03-01T10:00:00'."
    )


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_blank_session_is_refused_and_of_an_earlier_version_taken_for_none(blank: str) -> None:
    assert refused(session=blank) == f"session: is blank; give a text, or leave out what is optional; given {blank!r}."
    with pytest.raises(ValidationError, match="is blank"):
        Recall(query="tea", session=blank)
    state = {"base": 0.5, "last_seen_at": AT, "last_confirmed_at": AT}
    given = {"id": str(uuid4()), "text": "Tea", "session": blank, "valid_from": AT, "created_at": AT, "state": state}
    record = archived(given, LIMIT)
    assert isinstance(record, ArchivedFact)
    assert record.fact.session is None


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"link": 5}, "link: input should be an object; given 5."),
        ({"own": {"salt": str(uuid4()), "colour": 1}}, "own: colour: is no field that is known here; see its schema."),
        (
            {"link": {"source": ONE, "target": ONE, "type": "PART_OF", "strength": 1, "created_at": AT}},
            "link: target: is its source; a link is between two facts.",
        ),
        (
            {"contradiction": {"fact": ONE, "other": ONE, "found_at": AT}},
            "contradiction: other: is not greater than `fact`; give two facts, the one with the smaller id first.",
        ),
        (
            {"relation": {**RELATION, "target": "MIRA"}},
            "relation: target: a relation needs two different entities; given 'MIRA' for both.",
        ),
        (
            {"relation": {**RELATION, "type": "t" * 65}},
            "relation: type: string should have at most 64 characters; given 'ttt",
        ),
        (
            {"document": {"path": "a.md", "folder": "/x", "digest": "\\xabc", "read_at": AT}},
            "document: digest: string should match pattern",
        ),
    ],
)
def test_a_fault_of_a_record_of_an_archive_names_its_kind(record: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        archived(record, LIMIT)
    assert str(refusal.value).startswith(message)


@pytest.mark.parametrize("field", ["created_at", "last_seen_at"])
def test_what_was_done_to_a_fact_later_than_it_is_stored_counts_as_done_then(field: str) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    later, earlier = datetime(2027, 3, 1, tzinfo=UTC), datetime(2025, 3, 1, tzinfo=UTC)
    for said, taken in ((later, now), (earlier, earlier)):
        stored = new_fact({"text": "Tea", field: said.isoformat()}, LIMIT, now)
        assert getattr(stored, field) == taken


@pytest.mark.parametrize("field", ["category", "entity", "key", "source"])
def test_short_texts_are_not_blank_and_have_at_most_1024_characters(field: str) -> None:
    assert getattr(fact(**{field: "x" * 1_024}), field) == "x" * 1_024
    assert "at most 1024 characters" in refused(**{field: "x" * 1_025})
    assert "is blank" in refused(**{field: ""})
    assert "is blank" in refused(**{field: " \n"})
    assert "valid string" in refused(**{field: 5})


@pytest.mark.parametrize("field", ["value", "summary"])
def test_long_texts_have_at_most_8192_characters(field: str) -> None:
    assert getattr(fact(**{field: "x" * 8_192}), field) == "x" * 8_192
    assert "at most 8192 characters" in refused(**{field: "x" * 8_193})


def test_an_upload_has_at_most_1048576_characters() -> None:
    assert len(Upload(path="notes/boat.md", text="ü" * 1_048_576).text) == 1_048_576
    with pytest.raises(ValidationError, match="at most 1048576 characters"):
        Upload(path="notes/boat.md", text="x" * 1_048_577)


def test_tags_come_as_a_list_or_with_commas_and_are_cleaned() -> None:
    assert fact(tags="NIBE, modbus ,,heat  pump").tags == ["nibe", "modbus", "heat pump"]
    assert fact(tags=["Home", " drinks ", "home"]).tags == ["home", "drinks"]
    assert fact(tags="").tags == []


@pytest.mark.parametrize(
    ("tags", "fault"),
    [
        (["a,b"], "tags.0: a tag must not be blank and has no comma"),
        (["fine", " "], "tags.1: a tag must not be blank"),
        ([5], "tags.0: input should be a valid string"),
        (["x" * 129], "tags.0: string should have at most 128 characters"),
        ([f"t{i}" for i in range(65)], "tags: list should have at most 64 items"),
        (5, "tags: input should be a valid list"),
    ],
)
def test_bad_tags_are_refused(tags: Any, fault: str) -> None:
    assert refused(tags=tags).startswith(fault)


@pytest.mark.parametrize(
    ("field", "allowed"),
    [("kind", "'semantic', 'episodic', 'chunk' or 'item'"), ("decay_class", "'permanent', 'durable'")],
)
def test_an_invalid_choice_is_refused_with_the_valid_ones(field: str, allowed: str) -> None:
    message = refused(**{field: "forever"})

    assert allowed in message
    assert "given 'forever'" in message


OF_ITEM: dict[str, Any] = {"document": "{}", "created_at": "", "indexed": True}
ITEM: dict[str, Any] = {"entity": '"users"/"1"/', "key": "drink", "metadata": OF_ITEM}


@pytest.mark.parametrize("lacking", [{"entity": None}, {"entity": "users"}, {"key": None}, {"metadata": None}])
def test_an_item_without_a_place_or_a_document_is_refused(lacking: dict[str, Any]) -> None:
    assert new_fact({"text": "tea", "kind": "item", **ITEM}, 100).kind == "item"
    assert refused(kind="item", **{**ITEM, **lacking}).startswith("kind: an item has a path, a key and a document")


@pytest.mark.parametrize(
    "metadata",
    [
        {"document": 5}, {"document": "no JSON"}, {"document": "[]"}, {"document": '{"a":' * 101 + "1" + "}" * 101},
        {"created_at": 5}, {"indexed": None}, {"minutes": "soon"}, {"minutes": 1e300}, {"minutes": 0},
    ],
)  # fmt: skip
def test_an_item_that_no_list_of_items_could_show_is_refused(metadata: dict[str, Any]) -> None:
    changed = ITEM | {"metadata": OF_ITEM | metadata}
    assert refused(kind="item", **changed).startswith("kind: an item has a path, a key and a document")


@pytest.mark.parametrize("given", ["x", "", 5, [], "018f6b2e"])
def test_invalid_uuids_are_refused(given: Any) -> None:
    assert refused(id=given).startswith("id: input should be a valid UUID; given ")


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (list[int], [], "ids: list should have at least 1 item, not 0; given []"),
        (bool, "maybe", "ids: input should be true or false; given 'maybe'"),
        (float, "soon", "ids: input should be a number; given 'soon'"),
        (UUID, 5, "ids: input should be a valid UUID; given 5"),
    ],
)
def test_messages_are_about_the_value_and_not_about_how_it_was_read(kind: Any, given: Any, message: str) -> None:
    bounds = {"min_length": 1} if kind == list[int] else {}
    with pytest.raises(ValidationError) as refusal:
        TypeAdapter(Annotated[kind, Field(**bounds)]).validate_python(given)
    assert fault_of({**refusal.value.errors()[0], "loc": ("ids",)}) == message


@given(st.dictionaries(st.sampled_from([*NewFact.model_fields, "colour"]), anything, max_size=6) | anything)
@properties
def test_any_input_is_a_fact_or_a_printable_error(given: Any) -> None:
    taken, refusal = taken_or_refused(given)

    assert (taken is None) == bool(refusal)
    refusal.encode()
    if taken is not None:
        assert taken.text == taken.text.strip() != ""
        assert taken.model_dump_json().encode()


@pytest.mark.parametrize("name", ["default", "a", "0", "org/team:alice@example.com+x-y_z", "a" * 128])
def test_namespace_names_are_plain_words(name: str) -> None:
    assert validation.namespace_name(name) == name


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "é", "-a", ".a", "a" * 129, "a\n", "a\0", "a'b", "a%", SURROGATE, None, 5, []]
)
def test_other_namespace_names_are_refused(name: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^namespace: is no name; use up to 128 letters.*; given "):
        validation.namespace_name(name)


def test_an_id_is_read_from_text_and_passed_on_as_it_is() -> None:
    id_ = UUID("018f6b2e-7c3d-7000-8000-000000000001")

    assert validation.fact_id(str(id_)) == validation.fact_id(id_) == id_
    assert validation.fact_id(f"mem_{id_.hex}") == id_
    assert new_fact({"text": "Tea.", "id": f"mem_{id_.hex}"}, 100).id == id_


def test_an_error_quotes_an_id_as_it_was_given() -> None:
    with pytest.raises(InvalidInputError, match="given 'mem_1'"):
        validation.fact_id("mem_1")


@pytest.mark.parametrize("given", ["x", "", None, 5, [], {}, b"x", "018f6b2e", SURROGATE])
def test_ids_must_be_uuids(given: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^id: .*; given "):
        validation.fact_id(given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2025-03-01T10:00:00Z", datetime(2025, 3, 1, 10, tzinfo=UTC)),
        ("2025-03-01T10:00:00.5+02:00", datetime(2025, 3, 1, 8, 0, 0, 500_000, tzinfo=UTC)),
        ("2025-03-01", datetime(2025, 3, 1, tzinfo=UTC)),
        (date(2025, 3, 1), datetime(2025, 3, 1, tzinfo=UTC)),
        (1_740_823_200, datetime(2025, 3, 1, 10, tzinfo=UTC)),
        (1_740_823_200.5, datetime(2025, 3, 1, 10, 0, 0, 500_000, tzinfo=UTC)),
        ("1740823200", datetime(2025, 3, 1, 10, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-86_400, datetime(1969, 12, 31, tzinfo=UTC)),
        ("0001-01-02T00:00:00Z", datetime(1, 1, 2, tzinfo=UTC)),
    ],
)
def test_an_instant_is_iso_8601_a_date_or_epoch_seconds(given: Any, expected: datetime) -> None:
    read = validation.instant(given, "--now")

    assert read == expected
    assert read.tzinfo is UTC


@pytest.mark.parametrize(
    "given",
    [
        "tomorrow",
        "",
        " ",
        "2025-13-01",
        "2025-02-30",
        "25:00",
        None,
        True,
        [],
        {},
        math.nan,
        math.inf,
        1e300,
        10**400,
        NUL,
        SURROGATE,
    ],
)
def test_invalid_instants_are_refused(given: Any) -> None:
    instant = "instant, such as 2026-01-31T12:00:00Z, or a date; given "
    assert re.match(f"--now: input should be a valid ({instant}|day|string; given )", refused_instant(given))
    assert "; given " in refused_instant(given)


def test_a_day_that_no_calendar_has_is_refused_as_it_was_given() -> None:
    with pytest.raises(
        InvalidInputError, match=r"as_of: input should be a valid day of the calendar: .*month.*; given '2026-13-01'\."
    ):
        validation.instant("2026-13-01", "as_of")


def test_an_instant_without_time_zone_is_refused() -> None:
    assert refused_instant("2025-03-01T10:00:00").startswith("--now: needs a time zone, such as Z")


@pytest.mark.parametrize(
    "given", ["0001-01-01T00:00:00+14:00", "0001-01-01T23:59:59Z", "9999-12-31T00:00:00Z", "9999-12-31T23:59:59-12:00"]
)
def test_an_instant_outside_of_the_years_of_utc_is_refused(given: str) -> None:
    assert "must lie in the years 1 to 9999, a day from their ends" in refused_instant(given)
    assert "must lie in the years 1 to 9999, a day from their ends" in refused(created_at=given)


@pytest.mark.parametrize("given", ["20250301", "2025", "202503"])
def test_a_date_without_hyphens_is_not_taken_for_epoch_seconds(given: str) -> None:
    assert "write a date as 2025-01-31" in refused_instant(given)


def test_a_question_is_text_without_recalled_context() -> None:
    assert own_words(" <memory-context>old</memory-context> who? ", "query", LIMIT) == "who?"


@pytest.mark.parametrize("given", ["", "  ", None, 5, ["who?"], NUL, SURROGATE])
def test_invalid_questions_are_refused(given: Any) -> None:
    with pytest.raises(ValidationError, match="query"):
        Recall(query=given)


@pytest.mark.parametrize("given", [0, -0.1, 1.01, math.nan, math.inf, 10**400, True, "0.5", None])
def test_a_boost_is_above_0_and_up_to_1(given: Any) -> None:
    assert Reinforce(id=UUID(int=1), boost=1).boost == 1.0
    with pytest.raises(ValidationError, match="boost"):
        Reinforce(id=UUID(int=1), boost=given)


@pytest.mark.parametrize("given", [0, -1, 1_001, math.nan, 10**400, True, "5", None])
def test_a_limit_is_a_whole_number_in_bounds(given: Any) -> None:
    assert [Recall(query="who?", limit=allowed).limit for allowed in (1, 1_000)] == [1, 1_000]
    with pytest.raises(ValidationError, match="limit"):
        Recall(query="who?", limit=given)


@pytest.mark.parametrize("given", ["", "  ", 5, True, [], NUL, SURROGATE, "x" * 1_025])
def test_a_filter_is_a_short_text_or_nothing(given: Any) -> None:
    assert [validation.optional_name(allowed, "tag") for allowed in (None, "home")] == [None, "home"]
    with pytest.raises(InvalidInputError, match=r"^tag: "):
        validation.optional_name(given, "tag")


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(refused(entity="x" * 5_000)) < 200


@pytest.mark.parametrize(
    ("fields", "durability", "decay_class"),
    [
        ({}, "persistent", None),
        ({"decay_class": "stable"}, "persistent", "stable"),
        ({"durability": "permanent"}, "permanent", "permanent"),
        ({"decay_class": "permanent"}, "permanent", "permanent"),
    ],
)
def test_an_episode_is_for_ever_if_its_durability_or_its_lifetime_is(
    fields: dict[str, Any], durability: str, decay_class: str | None
) -> None:
    given = fact(kind="episodic", **fields)

    assert (given.durability, given.decay_class) == (durability, decay_class)


def test_a_durability_that_contradicts_the_lifetime_or_the_kind_is_refused() -> None:
    for durability, decay_class in (("permanent", "session"), ("persistent", "permanent")):
        said = refused(kind="episodic", durability=durability, decay_class=decay_class)
        assert said.startswith(f"durability: '{durability}' contradicts the decay_class '{decay_class}'")
    assert refused(durability="permanent").startswith("durability: only episodes have one, not a semantic fact")
    assert "'persistent' or 'permanent'" in refused(kind="episodic", durability="eternal")


@pytest.mark.parametrize("said", [{}, {"source_date": "2026-06-02"}, {"created_at": "2026-06-01T00:00:00Z"}])
def test_a_fact_that_was_no_longer_true_when_it_was_said_needs_a_beginning(said: dict[str, str]) -> None:
    fact = {"text": "Kim rented a boat shed", "valid_until": "2026-06-01"} | said
    now = datetime(2026, 11, 27, tzinfo=UTC)
    with pytest.raises(InvalidInputError, match="when it was said; give valid_from too"):
        new_fact(fact, LIMIT, now)
    for more in ({"valid_from": "2026-05-31"}, {"source_date": "2026-05-31"}, {"valid_until": "2026-12-01"}):
        assert new_fact(fact | more, LIMIT, now).valid_until


@pytest.mark.parametrize("field", ["value", "summary"])
def test_a_blank_value_or_summary_counts_as_none(field: str) -> None:
    blank, none = (Store.model_validate({"text": "Mira drinks tea", field: given}) for given in (" ", None))
    assert blank == none
    assert Edit.model_validate({"id": str(uuid4()), field: ""}).model_fields_set == {"id", field}


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u200b\u202e", "\ufeff \u2060", "\u3164\u2800"])
def test_a_text_without_visible_characters_is_refused_before_it_is_accepted(text: str) -> None:
    with pytest.raises(ValidationError, match="cannot store empty fact text"):
        Store(text=text)
    with pytest.raises(InvalidInputError, match="cannot store empty fact text"):
        new_fact({"text": text}, LIMIT)
