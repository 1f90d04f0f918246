"""How the dashboard writes spans of time, and what a page says of the first steps."""

from types import SimpleNamespace

import pytest
from fastapi import Request

from api.http.dashboard.rendering import DAY, HOUR, MINUTE, MONTH, TEMPLATES, YEAR, detail, page, share, span


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (2 * YEAR, "2 years"), (1.6 * YEAR, "19 months"), (YEAR, "1 year"), (2.5 * MONTH, "2 months"),
        (1.5 * MONTH, "45 days"), (MONTH, "1 month"), (1.5 * DAY, "36 hours"), (DAY, "1 day"), (HOUR, "1 hour"),
        (1.5 * HOUR, "90 minutes"), (1.5 * MINUTE, "1 minute"), (12.3, "12 s"), (1.234, "1.2 s"),
    ],
)  # fmt: skip
def test_a_span_is_said_in_the_largest_unit_that_fits_twice(seconds: float, said: str) -> None:
    assert span(seconds) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "\N{EN DASH}"), (0.0, "0 %"), (1e-9, "< 1 %"), (0.0099, "< 1 %"), (0.01, "1 %"), (1.0, "100 %")],
)
def test_a_share_is_said_to_be_nothing_only_where_it_is(value: float | None, said: str) -> None:
    assert share(value) == said


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The spare key", "The spare key"),
        ("The spare key hangs behind the clock", "The spare key hangs…"),
        ("会议 在莱比锡的新图书馆二楼举行大约三个小时", "会议 在莱比锡的新图书馆二楼举行大约三…"),
        ("A" * 30, "A" * 19 + "…"),
    ],
)
def test_a_long_text_is_shortened_also_where_it_has_hardly_any_spaces(text: str, shown: str) -> None:
    assert TEMPLATES.from_string("{{ text | shortened(20) }}").render(text=text) == shown


@pytest.mark.parametrize("name", ["content_salience", "since", "times", "until", "some_thing"])
@pytest.mark.parametrize("value", ["infinity", "<b>", 10**308, [1], {"a": 1}, True, None])
def test_a_detail_of_an_imported_history_may_be_anything(name: str, value: object) -> None:
    shown = TEMPLATES.from_string("{{ value | detail(name) }}").render(name=name, value=value)
    assert "<b>" not in shown
    assert any(said in shown for said in ("salience", "since ", "time", "until ", "without end", "some thing "))


def test_details_of_events_are_said_in_words() -> None:
    assert [detail(1, "times"), detail(1_200, "times")] == ["1 time", "1,200 times"]
    assert [detail(0.256, "content_salience"), detail(None, "until")] == ["salience of its content 26 %", "without end"]
    since = detail("2025-01-31T08:00:00Z", "since")
    assert since == 'since <time datetime="2025-01-31T08:00:00+00:00">2025-01-31 08:00 UTC</time>'
    assert detail("asked", "forgotten_reason") == "forgotten reason asked"


def test_before_the_first_pass_the_command_to_see_one_names_the_namespace() -> None:
    request = Request({"type": "http", "method": "GET", "path": "/dashboard/runs", "query_string": b"", "headers": []})
    request.state.caller = SimpleNamespace(namespace="mira", scopes={"read"}, key=None)
    none = {"runs": [], "counted": {}, "whole": False, "everywhere": False, "next": None, "later": False}
    assert b"ebb branch --older 365d --namespace mira<" in page(request, "runs.html", **none).body


@pytest.mark.parametrize(
    ("held", "said"), [(1, "1 fact has ended but stays visible"), (2, "2 facts have ended but stay")]
)
def test_one_held_fact_is_not_many(held: int, said: str) -> None:
    request = Request({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []})
    request.state.caller = SimpleNamespace(namespace="mira", scopes={"read"}, key=None)
    counts = ("facts", "due", "forgotten", "pinned", "contradictions", "pending_embeddings")
    content = {"stats": dict.fromkeys(counts, 3) | {"held": held}, "courses": [{"title": "Facts", "now": {}}] * 5}
    none = {"days": 1, "spans": {}, "newest": [], "system": None, "kept_up": []}
    assert said.encode() in page(request, "overview.html", **content, **none).body


def test_a_regret_is_no_decision_to_let_go() -> None:
    request = Request({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []})
    request.state.caller = SimpleNamespace(namespace="mira", scopes={"read"}, key=None)
    counts = ("facts", "due", "forgotten", "pinned", "contradictions", "pending_embeddings", "held", "regretted")
    content = {"stats": dict.fromkeys(counts, 3), "courses": [{"title": "Facts", "now": {}}] * 5}
    none = {"days": 1, "spans": {}, "newest": [], "system": None, "kept_up": []}
    assert b"questions whose best answer had ended by itself" in page(request, "overview.html", **content, **none).body


def test_where_contexts_are_not_noted_none_are_said_to_be_stored() -> None:
    request = Request({"type": "http", "path": "/dashboard/contexts", "query_string": b"", "headers": []})
    known = {"found": [], "texts": {}, "most": 50, "open_to_everyone": True}
    kept, dropped = (page(request, "contexts.html", hours=hours, **known).body.decode() for hours in (0.5, 0))
    assert "are stored, for 30 minutes and at most 50" in kept
    assert "EBB_LAST_CONTEXTS_HOURS" in dropped
    assert "are stored, for" not in dropped
