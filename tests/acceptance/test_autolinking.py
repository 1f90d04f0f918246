"""New facts are linked with those that say the like, by real workers that are told to."""

import pytest
from live_system import LiveSystem, eventually

pytestmark = pytest.mark.acceptance


def test_new_facts_are_linked_with_those_that_say_the_like_if_that_is_wanted(idle: LiveSystem) -> None:
    idle.settings["EBB_AUTO_LINK"] = "true"
    idle.start("worker", "maintenance")
    with idle.client() as client:
        ids = [client.store(f"Mira feeds her three cats at {hour} every day.")["id"] for hour in ("six", "seven")]
        client.store("The tax office opens on Monday.")
        arguments = {"text": "Mira feeds her three cats at six every day.", "id": ids[0]}
        assert client.call("memory.store", arguments, 30)["action"] == "unchanged"
    eventually(lambda: idle.rows("select type from links"), "the two facts are linked")
    idle.settle()
    ((source, target, kind, close),) = idle.rows("select source::text, target::text, type, strength > 0.7 from links")
    assert ({source, target}, kind, close) == (set(ids), "RELATED_TO", True)
