"""Settings of a namespace and their effect on episodes, through the command line and the client, on real workers."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from live_system import LiveSystem

from api.client import Client
from workers.errors import InvalidInputError

pytestmark = pytest.mark.acceptance

HALF_LIFE = "hygiene.confidenceDecay.halfLife"


def test_settings_are_shown_set_and_unset_at_the_prompt(live: LiveSystem, namespace: str) -> None:
    ebb = ("settings", "--namespace", namespace)
    done = live.ebb_json(*ebb, "--set", f"{HALF_LIFE}=60", "--set", "hygiene.episodicTTL.operator=AND")
    assert done["own"] == {"hygiene": {"confidenceDecay": {"halfLife": 60}, "episodicTTL": {"operator": "AND"}}}
    assert live.ebb_json(*ebb) == done | {"changed": False}
    shown = live.ebb(*ebb).stdout
    assert [line.split() for line in shown.splitlines() if "halfLife" in line] == [
        [HALF_LIFE, "60", "set", "for", "this", "namespace"]
    ]
    assert live.ebb_json(*ebb, "--unset", "hygiene")["own"] == {}


def test_a_wrong_setting_is_refused_with_the_documented_words(live: LiveSystem, namespace: str) -> None:
    done = live.ebb("settings", "--namespace", namespace, "--set", f"{HALF_LIFE}=0", "--json")
    assert (done.returncode, json.loads(done.stdout)["error"]["message"]) == (1, f"{HALF_LIFE} must be > 0, got 0.")
    assert live.ebb("settings", "--namespace", namespace, "--set", HALF_LIFE).returncode == 2


def test_one_namespace_ages_by_its_own_settings(client: Client) -> None:
    client.settings(set={"hygiene.episodicTTL.persistentDays": 7, "hygiene.episodicTTL.permanentStaleDays": 5})
    client.store("We missed the last train to Basel.", kind="episodic", session="a", turn=1)
    client.store("The wedding was on a ship.", kind="episodic", durability="permanent")
    client.store("Tea is at four.")
    client.decay(now=(datetime.now(UTC) + timedelta(days=8)).isoformat())
    held = client.stats()
    assert (held["forgotten_by_reason"], held["turns"]) == ({"aged": 1}, 1)
    assert held["episodes"] == {"persistent": 0, "permanent": 1, "stale": 1}
    with pytest.raises(InvalidInputError, match="contradicts the decay_class 'session'"):
        client.store("Both at once.", kind="episodic", durability="permanent", decay_class="session")
