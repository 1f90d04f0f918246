"""Arbitrary settings: the start succeeds or fails with a message that names the variable."""

import contextlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made_up import JSON, ODD_TEXTS, TEXTS, examples

from workers.core.hygiene import PATHS, changed
from workers.errors import InvalidInputError, SettingsError
from workers.settings import Settings

NAMES = tuple(f"EBB_{name.upper()}" for name in Settings.model_fields)
SPOKEN = st.one_of(
    st.sampled_from([*ODD_TEXTS, "1_000", "\uff10", "1e3", "0x10", "on", "yes", "inf", "* * * *", "60 25 32 13 8",
                     "@daily", "0 0 1-99999999 * *", "*/0 * * * *", "0-59/0 * * * *", "Europe/Absent", "/etc/passwd",
                     "o200k"]),
    st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=20),
    st.text("0123456789*/,- ", max_size=12),
    st.integers().map(str),
    st.floats().map(str),
)  # fmt: skip


def refused(environment: dict[str, str]) -> str | None:
    try:
        Settings.from_environment(environment)
    except SettingsError as error:
        return str(error)
    return None


@examples(400)
@example(name="EBB_DATABASE_URL", value="\udcff")
@example(name="EBB_OAUTH_ISSUERS", value="https://[::1")
@given(name=st.sampled_from(NAMES), value=SPOKEN)
def test_any_value_of_a_setting_is_accepted_or_refused_by_name(name: str, value: str) -> None:
    message = refused({name: value})
    assert message is None or name in message


@examples(100)
@given(name=TEXTS.filter(str.isprintable))
def test_any_unknown_name_is_refused(name: str) -> None:
    given = f"EBB_{name}"
    if given.upper() not in (*NAMES, "EBB_DECAY_COLD_THRESHOLD"):
        assert given.upper() in (refused({given: "1"}) or "")


@pytest.mark.parametrize("schedule", ["1,, * * * *", "x-y * * * *", "*/0 * * * *", "1 2 3 4 8"])
def test_an_invalid_schedule_is_refused(schedule: str) -> None:
    assert "EBB_RELATION_SCHEDULE" in (refused({"EBB_RELATION_SCHEDULE": schedule}) or "")


@examples(300)
@example(given={"hygiene.confidenceDecay.halfLife": 10**400}, unset=[])
@given(given=st.dictionaries(st.one_of(st.sampled_from(PATHS), TEXTS), JSON, max_size=3),
       unset=st.lists(st.one_of(st.sampled_from(PATHS), TEXTS), max_size=3))  # fmt: skip
def test_any_settings_of_a_namespace_are_accepted_or_refused(given: Any, unset: Any) -> None:
    known = {"hygiene": {"confidenceDecay": {"halfLife": 60}}}
    with contextlib.suppress(InvalidInputError):
        changed(known, given, unset)
    assert known == {"hygiene": {"confidenceDecay": {"halfLife": 60}}}
