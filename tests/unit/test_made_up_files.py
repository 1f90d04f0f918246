"""Arbitrary contents of Ebb's own files: they are read, or reported as damaged."""

import json
from dataclasses import asdict
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from made_up import JSON, TEXTS, examples, spoilt

from api.archive_import import Checkpoint, Progress
from api.up.home import Home, State
from workers.errors import SystemStateError

STATE = {"database_url": "postgresql:///ebb", "redis_url": "redis://", "flower_url": "", "api_url": ""}
CONTENTS = st.one_of(st.binary(), JSON.map(lambda one: json.dumps(one).encode()))


@examples(150)
@given(content=st.one_of(CONTENTS, spoilt(STATE, st.one_of(TEXTS, JSON)).map(lambda one: json.dumps(one).encode())))
def test_any_state_file_is_read_or_reported_as_damaged(tmp_path: Path, content: bytes) -> None:
    home = Home(tmp_path)
    home.state_file.write_bytes(content)
    message = ""
    try:
        state = home.last_state()
    except SystemStateError as damaged:
        message = str(damaged)
    assert str(home.state_file) in message or all(isinstance(getattr(state, name), str) for name in STATE)


def test_written_state_is_read_back(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.last_state() is None
    home.write_state(State(**STATE))
    assert home.last_state() == State(**STATE)


@examples(150)
@given(content=st.one_of(CONTENTS, spoilt({"offset": 5, "lines": 2}).map(lambda one: json.dumps(one).encode())))
def test_any_checkpoint_is_read_or_the_import_starts_again(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "facts.jsonl"
    source.write_text("{}")
    checkpoint = Checkpoint(tmp_path, source, {"into": "default"})
    checkpoint._file.write_bytes(content)
    assert all(type(value) is int and value >= 0 for value in asdict(checkpoint.load()).values())


def test_a_checkpoint_is_read_back(tmp_path: Path) -> None:
    source = tmp_path / "facts.jsonl"
    source.write_text("{}")
    Checkpoint(tmp_path, source, {"into": "default"}).save(Progress(offset=2, lines=1))
    assert Checkpoint(tmp_path, source, {"into": "default"}).load() == Progress(offset=2, lines=1)


def test_an_import_in_another_way_has_a_checkpoint_of_its_own(tmp_path: Path) -> None:
    source = tmp_path / "facts.jsonl"
    source.write_text("{}")
    Checkpoint(tmp_path, source, {"into": None, "again": False}).save(Progress(offset=2, lines=1))
    assert Checkpoint(tmp_path, source, {"into": None, "again": True}).load() == Progress()
