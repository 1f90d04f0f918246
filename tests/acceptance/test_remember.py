"""Conversations are stored as turns, each once, through task, HTTP and command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from ebb import InvalidInputError, Memory
from live_system import LiveSystem

pytestmark = pytest.mark.acceptance

FIRST = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "I moved to Leipzig.", "created_at": "2026-01-31T08:00:00Z"},
]
SECOND = [{"role": "assistant", "content": "Since when?"}, {"role": "user", "content": "Since the spring."}]


def test_a_conversation_may_be_given_again_as_it_grows(memory: Memory) -> None:
    first = memory.remember(FIRST, session="monday")
    second = memory.remember(FIRST + SECOND, session="monday")
    third = memory.remember(SECOND, session="monday")

    assert (first.added, first.left_out) == (1, [0])
    assert [(one.message, one.role, one.turn) for one in second.turns] == [
        (1, "user", None), (2, "assistant", 1), (3, "user", 2),
    ]  # fmt: skip
    assert (second.added, third.added) == (2, 0)
    assert memory.stats().facts == 3


def test_turns_are_recalled_with_session_role_and_time(memory: Memory) -> None:
    memory.remember(FIRST + SECOND, session="monday", source="chat")
    (found, *_) = memory.recall("Where does she live, in Leipzig?", role="user").results

    shown = found.model_dump(mode="json")
    assert (found.text, found.role, shown["session"], shown["turn"]) == ("I moved to Leipzig.", "user", "monday", 0)
    assert shown["source_date"].startswith("2026-01-31")


def test_injected_context_is_not_stored(memory: Memory) -> None:
    memory.store("The spare key hangs behind the kitchen clock")
    injected = memory.context("Where is the key?").context
    done = memory.remember([{"role": "user", "content": f"{injected}\n\nWhere is the key?"}], session=7)

    assert done.added == 1
    assert {one.text for one in memory.facts().facts} == {
        "The spare key hangs behind the kitchen clock",
        "Where is the key?",
    }


def test_a_message_that_cannot_be_stored_affects_no_other(memory: Memory) -> None:
    done = memory.remember(["x" * 70_000, {"role": "user", "content": "Hello", "created_at": "yesterday"}, "Hi"])

    assert [one.error is None for one in done.turns] == [True, True, False, True]
    assert done.added == 3


def test_half_a_character_in_a_message_affects_no_other(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    halves = [{"role": "user", "content": "Hi \ud83d"}, {"role": "user", "content": "Hello", "id": "\ud83d"}]
    (file := tmp_path / "said.json").write_text(json.dumps([*halves, {"role": "user", "content": "Bye"}]))
    done = live.ebb("remember", str(file), "-n", namespace)
    assert done.returncode == 1
    assert done.stdout.startswith("3 turns: 2 added, 0 known, 1 with errors;")
    assert "message 0: text: must not contain lone surrogates" in done.stderr


def test_an_error_names_the_conversation_and_the_message_in_the_file(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    many: list[dict[str, Any]] = [{"role": "user", "content": f"Knot {number}"} for number in range(1_003)]
    many[1_001]["content"] = "Hi \ud83d"
    many[1_002]["content"] = ""
    said = [{"session": "c1", "messages": FIRST}, {"session": "c2", "messages": many}]
    (file := tmp_path / "said.json").write_text(json.dumps(said))
    done = live.ebb("remember", str(file), "-n", namespace)
    assert "conversation 2, message 1001: text: must not contain lone surrogates" in done.stderr
    first, second = json.loads(live.ebb("remember", str(file), "-n", namespace, "--json").stdout)["conversations"]
    assert ([one["message"] for one in first["turns"]], second["left_out"]) == ([1], [1_002])
    assert [one["message"] for one in second["turns"]] == list(range(1_002))
    file.write_text(json.dumps([*said[:1], {"session": "c3", "messages": []}, {"session": "\0", "messages": FIRST}]))
    refused = live.ebb("remember", str(file), "-n", namespace)
    assert f"conversation 3 of {file}: session: must not contain NUL" in " ".join(refused.stderr.split())


def test_a_session_without_turns_left_asks_for_another(memory: Memory) -> None:
    memory.store("The last but one.", session="long", turn=2**31 - 2)
    with pytest.raises(InvalidInputError, match="session: has 1 turn left, which 2 new ones exceed; begin another"):
        memory.remember(["One", "Two"], session="long")
    assert memory.remember(["One"], session="long").turns[0].turn == 2**31 - 1
    assert memory.remember(["One"], session="long").added == 0


def test_a_message_that_is_too_long_becomes_several_turns(memory: Memory) -> None:
    done = memory.remember(["A sentence of some words. " * 3_000], session="long")

    assert [(one.message, one.turn, one.error) for one in done.turns] == [(0, 0, None), (0, 1, None)]
    assert memory.remember(["A sentence of some words. " * 3_000], session="long").added == 0


def test_the_command_reads_a_file_and_reports_the_outcome(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(FIRST + SECOND))
    first = live.ebb("remember", str(file), "--session", "monday", "--namespace", namespace)
    again = live.ebb("remember", str(file), "--session", "monday", "--namespace", namespace)

    assert "3 turns: 3 added, 0 known" in " ".join(first.stdout.split())
    assert "0 added, 3 known" in " ".join(again.stdout.split())
    assert len(live.facts(namespace)) == 3


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"\x80\x81", "no UTF-8 text, gzipped or not; convert it"),
        (b"plain words", "no JSON object"),
        (b"{}", "no message to store"),
        (b"null", "a single value; give a list"),
        (b'{"role": "robot", "content": "Hi"}', "a `role`: user, assistant or tool"),
    ],
)
def test_the_command_names_a_file_that_holds_no_conversation(
    live: LiveSystem, namespace: str, tmp_path: Path, content: bytes, error: str
) -> None:
    file = tmp_path / "chat.json"
    file.write_bytes(content)
    done = live.ebb("remember", str(file), "--namespace", namespace)

    assert done.returncode == 1
    assert error in " ".join(done.stderr.split())
    assert "chat.json" in done.stderr


def test_calls_at_once_number_the_turns_of_a_session_one_after_another(live: LiveSystem, namespace: str) -> None:
    for number in range(16):
        said = [{"role": "user", "content": f"Crate {number} holds pears."}]
        live.send("memory.remember", {"namespace": namespace, "session": "harbour", "messages": said})
    live.settle()
    turns = live.rows(
        "select turn from facts join namespaces on namespaces.id = namespace where name = %s order by turn", [namespace]
    )
    assert [turn for (turn,) in turns] == list(range(16))
