"""Questions that strengthened a fact are recognised during the cool-down."""

from hypothesis import given
from hypothesis import strategies as st

from workers.core.repeats import LONGEST, is_repeat, key, with_question

instants = st.floats(0, 2**32 - 1)


def test_case_and_blanks_are_ignored() -> None:
    assert key("Where is  the key?") == key("where is the KEY?\n")
    assert key("Where is the key?") != key("Where is the lock?")


def test_a_use_that_is_reported_late_leaves_a_later_one_known() -> None:
    asked = with_question(with_question(b"", 7, 1_000, 600), 7, 100, 600)
    assert is_repeat(asked, 7, 1_100, 600)
    assert is_repeat(asked, 7, 200, 600)
    assert not is_repeat(asked, 7, 2_000, 600)


@given(st.lists(st.tuples(st.integers(8, 2**32 - 1), instants), max_size=40), instants)
def test_a_question_is_a_repeat_only_within_the_cool_down(earlier: list[tuple[int, float]], at: float) -> None:
    asked = b""
    for question, then in earlier:
        asked = with_question(asked, question, then, 600)
    asked = with_question(asked, 7, at, 600)
    assert len(asked) <= LONGEST
    assert is_repeat(asked, 7, at + 598, 600)
    assert is_repeat(asked, 7, at - 598, 600)
    assert not is_repeat(asked, 7, at + 601, 600)
    assert not is_repeat(asked, 7, at, 0)
