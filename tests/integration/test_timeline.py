"""Timeline: the values of a property in order with their speakers, including deep memory, without deleted facts."""

from ebb.contract.reports import ShowTimeline, Statement
from memory import Memory, day

from workers.memory.history import timeline

CITY = {"entity": "Mira", "key": "city"}


def said(memory: Memory, *, at: float = 100, namespace: str = "default") -> list[Statement]:
    """Return the whole timeline of a property, page by page."""
    found: list[Statement] = []
    cursor = None
    while True:
        asked = ShowTimeline(entity="mira", key="CITY", limit=2, cursor=cursor, namespace=namespace)
        page = timeline(memory.context, asked, day(at))
        found += page.statements
        if (cursor := page.next) is None:
            return found


def test_each_value_has_its_time_and_its_speaker(memory: Memory) -> None:
    rome = memory.add("Mira lives in Rome.", value="Rome", role="user", session="s", turn=3, **CITY)
    memory.store(
        {"text": "Mira lives in Bonn.", "value": "Bonn", "supersedes": str(rome), "source": "a.md"} | CITY, at=5
    )
    memory.add("Mira lives in Oslo.", value="Oslo", valid_from=day(2).isoformat(), at=6, **CITY)
    memory.add("Mira lives in Bonn now.", entity="Mira", key="town", value="Bonn")

    first, second, third = said(memory)
    assert [one.value for one in (first, second, third)] == ["Rome", "Oslo", "Bonn"]
    assert [one.state for one in (first, second, third)] == ["superseded", "live", "live"]
    assert (first.valid_from, first.valid_until, first.said_at) == (day(0), day(5), day(0))
    assert (first.role, first.session, first.turn, first.superseded_by) == ("user", "s", 3, third.id)
    assert (third.source, third.valid_until) == ("a.md", None)


def test_what_ended_by_itself_is_part_of_it_and_what_was_forgotten_on_request_is_not(memory: Memory) -> None:
    memory.add("Mira lives in Rome.", value="Rome", decay_class="session", **CITY)
    asked = memory.add("Mira lives in Bonn.", value="Bonn", at=1, **CITY)
    assert [(one.value, one.state) for one in said(memory, at=2)] == [("Rome", "over"), ("Bonn", "live")]

    memory.forget(asked, at=3)
    memory.decay(3)
    assert [(one.value, one.state) for one in said(memory)] == [("Rome", "forgotten: faded")]

    assert memory.demote(at=30) == 1
    assert [(one.value, one.state) for one in said(memory)] == [("Rome", "forgotten: faded")]


def test_another_namespace_has_its_own(memory: Memory) -> None:
    memory.add("Mira lives in Rome.", value="Rome", namespace="theirs", **CITY)
    memory.add("Mira lives in Bonn.", value="Bonn", **CITY)
    assert [one.value for one in said(memory)] == ["Bonn"]
    assert [one.value for one in said(memory, namespace="theirs")] == ["Rome"]
    assert said(memory, namespace="unknown") == []
