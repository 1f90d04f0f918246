"""Settings of a namespace apply to it alone, from the next pass on, and can be unset."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from memory import Memory, day

from workers.admin import export
from workers.decay import forecast
from workers.errors import InvalidInputError
from workers.memory import namespace_settings

HALF_LIFE = "hygiene.confidenceDecay.halfLife"
FLOOR = "hygiene.confidenceDecay.cullFloor"
DAYS = "hygiene.episodicTTL.persistentDays"
TURNS = "hygiene.episodicTTL.persistentTurns"
STALE = "hygiene.episodicTTL.permanentStaleDays"

SETTLED = "update namespaces set settings_changed_at = to_timestamp(0)"


def reasons(memory: Memory) -> dict[str, str | None]:
    return dict(memory.rows("select text, forgotten_reason from facts"))


def believed(memory: Memory, at: float, namespace: str = "default") -> list[float]:
    facts = [line for line in export.export(memory.context, namespace, day(at)) if "text" in line]
    return [fact["effective_confidence"] for fact in facts]


def test_settings_are_kept_and_unset_again(memory: Memory) -> None:
    assert memory.choose({HALF_LIFE: 60})["confidenceDecay"] == {"halfLife": 60, "cullFloor": 0.1}
    assert memory.choose({FLOOR: 0})["confidenceDecay"] == {"halfLife": 60, "cullFloor": 0}
    assert memory.choose(None, HALF_LIFE, at=1)["confidenceDecay"] == {"halfLife": 180, "cullFloor": 0}
    shown = namespace_settings.settings_of(memory.context, "default")
    assert (shown.own, shown.changed) == ({"hygiene": {"confidenceDecay": {"cullFloor": 0}}}, False)


def test_looking_at_settings_makes_no_namespace(memory: Memory) -> None:
    assert namespace_settings.settings_of(memory.context, "unknown").own == {}
    assert memory.value("select count(*) from namespaces") == 0


def test_a_wrong_setting_changes_nothing(memory: Memory) -> None:
    with pytest.raises(InvalidInputError, match=r"hygiene\.confidenceDecay\.halfLife must be > 0, got -1"):
        memory.choose({FLOOR: 0.5, HALF_LIFE: -1})
    assert namespace_settings.settings_of(memory.context, "default").own == {}


def test_a_late_repeat_undoes_nothing_that_was_chosen_since(memory: Memory) -> None:
    memory.choose({HALF_LIFE: 60}, at=1)
    memory.choose({HALF_LIFE: 90}, at=2)
    with pytest.raises(InvalidInputError, match="others were chosen at 2025-01-03"):
        memory.choose({HALF_LIFE: 60}, at=1)
    assert memory.choose({HALF_LIFE: 90}, at=2)["confidenceDecay"]["halfLife"] == 90


def test_settings_chosen_at_once_are_all_kept(memory: Memory) -> None:
    given: list[dict[str, Any]] = [{HALF_LIFE: 60}, {FLOOR: 0}, {DAYS: 30}, {TURNS: 9}, {STALE: 7}]
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(memory.choose, given))
    whole = memory.choose()
    assert (whole["confidenceDecay"], whole["episodicTTL"]["persistentDays"]) == ({"halfLife": 60, "cullFloor": 0}, 30)


def test_one_namespaces_limits_never_touch_anothers_facts(memory: Memory) -> None:
    memory.choose({HALF_LIFE: 10, DAYS: 7, STALE: 5}, namespace="strict")
    for namespace in ("strict", "default"):
        memory.add(f"{namespace} fact", namespace=namespace)
        memory.add(f"{namespace} episode", namespace=namespace, kind="episodic")
        memory.add(f"{namespace} wedding", namespace=namespace, kind="episodic", durability="permanent")
    done = memory.decay(40).counters
    assert (done.culled, done.aged, done.stale) == (1, 1, 1)
    gone = {text: reason for text, reason in reasons(memory).items() if reason}
    assert gone == {"strict fact": "culled", "strict episode": "aged"}
    assert memory.stats(40, "strict").episodes["stale"] == 1
    assert memory.stats(40).episodes["stale"] == 0


def test_turns_of_one_namespace_age_no_episodes_of_another(memory: Memory) -> None:
    memory.choose({TURNS: 3}, namespace="chatty")
    for namespace in ("chatty", "default"):
        memory.add(f"{namespace} episode", namespace=namespace, kind="episodic")
    memory.store_turns(4, at=1, namespace="chatty")
    memory.store_turns(4, at=1)
    memory.decay(1)
    assert {text: reason for text, reason in reasons(memory).items() if reason} == {"chatty episode": "aged"}


def test_the_next_pass_looks_at_the_namespaces_facts_and_at_no_others(memory: Memory) -> None:
    for namespace in ("strict", "default"):
        memory.store(*[f"{namespace} fact {i}" for i in range(20)], namespace=namespace)
    memory.decay(0)
    memory.choose({HALF_LIFE: 1}, namespace="strict")
    assert memory.decay(4).counters.processed == 20
    assert {text.split()[0] for text, reason in reasons(memory).items() if reason == "culled"} == {"strict"}


def test_the_forecast_goes_by_settings_that_no_pass_has_heeded_yet(memory: Memory) -> None:
    memory.add("A fact.")
    memory.add("An episode.", kind="episodic")
    memory.choose({HALF_LIFE: 1, DAYS: 7})
    ahead = forecast.forecast(memory.context, "default", 10, day(0))
    culled, aged = ([number for number, one in enumerate(ahead, 1) if one.counts[why]] for why in ("culled", "aged"))
    assert (culled, aged) == ([4], [8])


def test_a_change_takes_effect_again_once_no_writer_can_have_the_old_settings(memory: Memory) -> None:
    memory.add("Tea at four.")
    memory.choose({HALF_LIFE: 100})
    assert memory.decay(0.1).counters.processed == 1
    assert memory.decay(0.2).counters.processed == 1
    memory.rows(SETTLED)
    assert memory.decay(0.3).counters.processed == 1
    assert memory.decay(0.4).counters.processed == 0


def test_a_change_ahead_of_a_clock_that_was_set_back_takes_effect_once(memory: Memory) -> None:
    memory.add("Tea at four.")
    memory.choose({HALF_LIFE: 100})
    memory.rows("update namespaces set settings_changed_at = now() + interval '300 days'")
    assert memory.decay(0.1).counters.processed == 1
    assert memory.decay(0.2).counters.processed == 0


def test_loosened_settings_let_facts_live_that_were_to_end(memory: Memory) -> None:
    memory.choose({DAYS: 7, TURNS: 3, HALF_LIFE: 1})
    aged = memory.add("An episode.", kind="episodic")
    outrun = memory.add("Another one.", kind="episodic", at=1)
    doubted = memory.add("A fact.")
    memory.store_turns(4, at=1)
    memory.choose({DAYS: 70, TURNS: 300, HALF_LIFE: 100}, at=2)
    memory.decay(9)
    assert [memory.row(one)["forgotten_reason"] for one in (aged, outrun, doubted)] == [None] * 3
    assert memory.row(outrun)["ends"] == pytest.approx(71)


def test_tightened_turns_are_found_by_the_next_pass(memory: Memory) -> None:
    id_ = memory.add("An episode.", kind="episodic")
    memory.store_turns(20, at=1)
    memory.choose({TURNS: 3}, at=2)
    assert memory.decay(3).counters.aged == 1
    assert memory.row(id_)["forgotten_reason"] == "aged"


@pytest.mark.parametrize("given", [{"hygiene.confidenceDecay": False}, {"hygiene": False}])
def test_without_the_semantic_branch_nothing_is_culled_and_raw_confidence_counts(
    memory: Memory, given: dict[str, Any]
) -> None:
    memory.choose(given)
    memory.add("A doubtful fact.", confidence=0.11)
    assert believed(memory, 3_000) == [0.11]
    assert memory.decay(3_000).counters.culled == 0


def test_ranking_uses_each_namespaces_own_confidence(memory: Memory) -> None:
    memory.choose({"hygiene.confidenceDecay": False}, namespace="raw")
    facts = {}
    for namespace in ("raw", "default"):
        facts[namespace] = memory.add("The tea is served at four.", namespace=namespace)
        memory.add("The tea was served at four.", namespace=namespace)
    priors = {}
    for namespace in facts:
        found = memory.ask("tea at four", at=180, namespace=namespace, explain=True).results
        priors[namespace] = found[0].explain["prior"] if found[0].explain else 0
    assert priors["raw"] > priors["default"]


def test_with_a_floor_of_zero_confidence_falls_without_culling(memory: Memory) -> None:
    memory.choose({FLOOR: 0})
    memory.add("A doubtful fact.")
    memory.decay(3_600)
    assert believed(memory, 3_600) == [pytest.approx(0.5**20)]
    assert memory.row(memory.ids("doubtful", at=3_600)[0])["forgotten_reason"] is None


@pytest.mark.parametrize("given", [{"hygiene.episodicTTL": False}, {"hygiene": False}])
def test_without_the_episodic_branch_no_episode_ages_or_gets_stale(memory: Memory, given: dict[str, Any]) -> None:
    memory.choose(given)
    memory.add("An episode.", kind="episodic")
    memory.add("The wedding.", kind="episodic", durability="permanent")
    memory.store_turns(501, at=1)
    done = memory.decay(3_000).counters
    assert (done.aged, done.stale) == (0, 0)


def test_the_operators_own_settings_can_switch_off_as_well(memory: Memory) -> None:
    memory.add("A fact.", confidence=0.11)
    memory.add("An episode.", kind="episodic")
    assert memory.having(hygiene=False).decay(3_000).counters.forgotten == 0
    assert memory.having(confidence_decay=False).decay(3_000).counters.forgotten == 1
    assert memory.having(episodic_ttl=False).decay(3_000).counters.forgotten == 1


def test_a_dry_run_goes_by_settings_that_no_pass_has_applied_yet(memory: Memory) -> None:
    memory.store(*(f"The guest in room {number} likes tea." for number in range(30)))
    memory.store(*(f"The guest in room {number} likes tea." for number in range(30)), namespace="other")
    memory.decay(100)
    memory.choose({"hygiene.confidenceDecay.halfLife": 20}, at=100)

    tried, done = memory.decay(100.1, dry_run=True).counters, memory.decay(100.1).counters

    assert (tried.processed, tried.culled, tried.held) == (done.processed, done.culled, done.held) == (30, 6, 24)


def test_a_dry_run_counts_no_fact_over_capacity_that_ends_by_changed_settings(memory: Memory) -> None:
    memory.store(*({"text": f"Guest {number}.", "confidence": 0.2} for number in range(4)))
    memory.store(*(f"The guest in room {number} likes tea." for number in range(30)))
    memory.decay(10)
    memory.choose({"hygiene.confidenceDecay.halfLife": 10, "capacity.facts": 29}, at=10)

    tried, done = memory.decay(11, dry_run=True).counters, memory.decay(11).counters

    assert (tried.culled, tried.crowded) == (done.culled, done.crowded) == (4, 1)


def test_a_dry_run_goes_by_rules_of_the_operator_that_no_pass_has_applied_yet(memory: Memory) -> None:
    memory.store(*(f"The guest in room {number} likes tea." for number in range(30)))
    memory.decay(100)
    other = memory.having(confidence_half_life=20)

    tried, done = other.decay(100.1, dry_run=True).counters, other.decay(100.1).counters

    assert (tried.processed, tried.culled, tried.held) == (done.processed, done.culled, done.held) == (30, 6, 24)
