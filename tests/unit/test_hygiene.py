"""Hygiene settings: partial ones override defaults, false and 0 switch off, and errors have the documented wording."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core.hygiene import Hygiene, changed, effective, merged, parameters, without
from workers.errors import InvalidInputError
from workers.settings import Settings

BELIEF, EPISODES = "hygiene.confidenceDecay", "hygiene.episodicTTL"
DOCUMENTED = {
    "confidenceDecay": {"halfLife": 180, "cullFloor": 0.1},
    "episodicTTL": {"persistentTurns": 500, "persistentDays": 90, "operator": "OR", "permanentStaleDays": 180},
    "schedule": "onConsolidation",
}


def chosen(own: dict[str, Any], **settings: Any) -> Any:
    return effective(Settings(**settings).hygiene_defaults, own)


def refused(given: Any = None, unset: Any = None) -> str:
    with pytest.raises(InvalidInputError) as refusal:
        changed({}, given, unset)
    return str(refusal.value)


def test_nothing_set_gives_the_documented_defaults() -> None:
    assert chosen({}) == DOCUMENTED
    assert parameters(chosen({})) == Hygiene(180, 0.1, 500, 90, both_limits=False, stale_days=180)


def test_the_documents_partial_example_is_merged_over_the_defaults() -> None:
    example = {"confidenceDecay": {"halfLife": 60, "cullFloor": 0.05}, "episodicTTL": {"persistentDays": 30}}

    assert chosen({"hygiene": example}) == {
        "confidenceDecay": {"halfLife": 60, "cullFloor": 0.05},
        "episodicTTL": {"persistentTurns": 500, "persistentDays": 30, "operator": "OR", "permanentStaleDays": 180},
        "schedule": "onConsolidation",
    }


def test_what_the_operator_sets_is_the_default_of_every_namespace() -> None:
    whole = chosen({"hygiene": {"confidenceDecay": {"cullFloor": 0}}}, confidence_half_life=60, persistent_turns=9)

    assert whole["confidenceDecay"] == {"halfLife": 60, "cullFloor": 0}
    assert whole["episodicTTL"]["persistentTurns"] == 9


@pytest.mark.parametrize(
    ("own", "settings", "off"),
    [
        ({"hygiene": {"confidenceDecay": False}}, {}, {"confidenceDecay"}),
        ({"hygiene": {"episodicTTL": False}}, {}, {"episodicTTL"}),
        ({}, {"confidence_decay": False}, {"confidenceDecay"}),
        ({}, {"episodic_ttl": False}, {"episodicTTL"}),
        ({"hygiene": {"episodicTTL": {}}}, {"episodic_ttl": False}, set()),
        ({"hygiene": {"schedule": "manual"}}, {"episodic_ttl": False}, {"episodicTTL"}),
    ],
)
def test_a_section_can_be_switched_off_and_on_again(own: Any, settings: dict[str, Any], off: set[str]) -> None:
    whole = chosen(own, **settings)

    assert {name for name in ("confidenceDecay", "episodicTTL") if whole[name] is False} == off


def test_hygiene_can_be_switched_off_as_a_whole_everywhere_or_in_one_namespace() -> None:
    assert chosen({"hygiene": False}) is False
    assert chosen({}, hygiene=False) is False
    assert chosen({"hygiene": {}}, hygiene=False) == DOCUMENTED


def test_disabled_sections_give_parameters_without_effect() -> None:
    assert parameters(False) == Hygiene(math.inf, 0.0, math.inf, math.inf, both_limits=True, stale_days=math.inf)
    assert parameters(chosen({"hygiene": {"confidenceDecay": False}})).persistent_days == 90
    assert parameters(chosen({"hygiene": {"episodicTTL": False}})).half_life == 180


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (f"{BELIEF}.halfLife", 0, "hygiene.confidenceDecay.halfLife must be > 0, got 0."),
        (
            "hygiene.episodicTTL.persistentTurns",
            0.5,
            "hygiene.episodicTTL.persistentTurns must be a whole number, got 0.5.",
        ),
        (f"{BELIEF}.halfLife", -1.5, "hygiene.confidenceDecay.halfLife must be > 0, got -1.5."),
        (f"{BELIEF}.halfLife", "60", "hygiene.confidenceDecay.halfLife must be a number, got '60'."),
        (f"{BELIEF}.halfLife", True, "hygiene.confidenceDecay.halfLife must be a number, got True."),
        (f"{BELIEF}.halfLife", math.nan, "hygiene.confidenceDecay.halfLife must be a number, got nan."),
        (f"{BELIEF}.halfLife", 1e9, "hygiene.confidenceDecay.halfLife must be at most 36525, got 1000000000.0."),
        (f"{BELIEF}.cullFloor", 1, "hygiene.confidenceDecay.cullFloor must be in [0, 1), got 1."),
        (f"{BELIEF}.cullFloor", -0.1, "hygiene.confidenceDecay.cullFloor must be in [0, 1), got -0.1."),
        (f"{EPISODES}.persistentTurns", 0, "hygiene.episodicTTL.persistentTurns must be > 0, got 0."),
        (f"{EPISODES}.persistentDays", 0, "hygiene.episodicTTL.persistentDays must be > 0, got 0."),
        (f"{EPISODES}.permanentStaleDays", 0, "hygiene.episodicTTL.permanentStaleDays must be > 0, got 0."),
        (f"{EPISODES}.operator", "XOR", "hygiene.episodicTTL.operator must be 'OR' or 'AND', got 'XOR'."),
        (
            "hygiene.schedule",
            "daily",
            "hygiene.schedule must be 'onConsolidation', 'onCapture' or 'manual', got 'daily'.",
        ),
        (EPISODES, 90, "hygiene.episodicTTL must be false, true or an object, got 90."),
    ],
)
def test_a_wrong_value_is_refused_in_the_documented_words(path: str, value: Any, message: str) -> None:
    assert refused({path: value}) == message
    name, *rest = path.split(".")
    nested: Any = value
    for one in reversed(rest):
        nested = {one: nested}
    assert refused({name: nested}) == message


def test_unknown_settings_and_all_faults_are_named_at_once() -> None:
    said = refused({f"{BELIEF}.halflife": 60, f"{EPISODES}.operator": None, "hygiene.confidenceDecay.halfLife.x": 1})

    assert "hygiene.confidenceDecay.halflife is no setting of a namespace; known are hygiene, hygiene.conf" in said
    assert "hygiene.episodicTTL.operator must be 'OR' or 'AND', got None" in said
    assert "hygiene.confidenceDecay.halfLife.x is no setting" in said
    assert refused(unset=["hygiene.halfLife"]).startswith("unset: ['hygiene.halfLife']: no settings of a namespace")
    for unset in ("lifetimes", "hygiene"):
        given = {"lifetimes": "careful", "hygiene.schedule": "manual"}
        assert refused(given, [unset]) == f"unset: ['{unset}']: would also remove what is set; leave out one of them."


def test_settings_are_set_by_paths_one_upon_the_other_and_unset_again() -> None:
    own = changed({}, {f"{BELIEF}.halfLife": 60, f"{EPISODES}": {"operator": "AND"}}, None)
    assert own == {"hygiene": {"confidenceDecay": {"halfLife": 60}, "episodicTTL": {"operator": "AND"}}}
    own = changed(own, {f"{BELIEF}": False, f"{EPISODES}.persistentDays": 30}, None)
    assert own == {"hygiene": {"confidenceDecay": False, "episodicTTL": {"operator": "AND", "persistentDays": 30}}}
    own = changed(own, {f"{BELIEF}": True}, [EPISODES])
    assert own == {"hygiene": {"confidenceDecay": {}}}
    assert changed(own, None, [BELIEF]) == {}
    assert changed(own, None, ["hygiene.episodicTTL.operator"]) == own


documents = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=2),
    lambda below: st.dictionaries(st.sampled_from("abc"), below, max_size=3),
    max_leaves=8,
).filter(lambda document: isinstance(document, dict))


@given(documents, documents)
def test_laying_settings_over_others_twice_changes_nothing(known: Any, given_: Any) -> None:
    once = merged(known, given_)

    assert merged(once, given_) == once


@given(documents, st.lists(st.sampled_from("abc"), min_size=1, max_size=3))
def test_unset_settings_are_removed(known: Any, path: list[str]) -> None:
    left: Any = without(known, path)
    for name in path:
        left = left.get(name) if isinstance(left, dict) else None

    assert left is None
