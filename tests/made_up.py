"""Generated input for tests: JSON mutated from valid examples, and the number of examples."""

import os
from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

FUZZ = int(os.environ.get("FUZZ", "0"))
"""Factor on the examples of a deep run, with random seeds; 0: the same examples in each run."""

DEEP = bool(os.environ.get("DEEP"))
"""Whether all examples run, as in `make test-all`; else a sixth of them."""

ODD_TEXTS = (
    "", " ", "\0", "a\0b", "\ud800", "\ufeff", "\u202e", "x" * 1_100, "ü" * 600, "NaN", "null", "true", "-1", "1e999",
    "../..", "a/b", "%s", "{}", "[]", "'", '"', ";--", "<b>", "[red]", "\\", "\n", "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59", "2025-02-30", "2025-01-01", "infinity", "-infinity", "now",
    "00000000-0000-0000-0000-000000000000", "{12345678-1234-5678-1234-567812345678}", "/" * 5, "default", "0",
)  # fmt: skip
ODD_NUMBERS = (
    0,
    -1,
    1,
    2**15,
    2**31,
    2**53,
    2**63,
    2**64,
    10**30,
    10**400,
    -(10**400),
    0.0,
    -0.0,
    5e-324,
    1e308,
    -1e308,
)

TEXTS = st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=20))
NUMBERS = st.one_of(
    st.sampled_from(ODD_NUMBERS), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.floats(0, 1)
)
SINGLES = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
JSON = st.recursive(
    SINGLES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=5,
)


def examples(deep: int, least: int = 4, few: int = 0) -> settings:
    """Return settings for that many examples in a deep run, otherwise `few`, a sixth or `least`; more with `FUZZ`."""
    few = few or max(deep // 6, min(deep, least))
    return settings(
        max_examples=deep * FUZZ or (deep if DEEP else few),
        derandomize=not FUZZ,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def spoilt_within(right: Any) -> st.SearchStrategy[Any]:
    """Return a strategy of JSON values equal to a valid one except for a part of them, at any depth."""
    if isinstance(right, dict) and right:
        inner = st.sampled_from(sorted(right)).flatmap(
            lambda name: spoilt_within(right[name]).map(lambda wrong: right | {name: wrong})
        )
        return st.one_of(inner, inner, inner, spoilt(right))
    if isinstance(right, list) and right:
        places = st.integers(0, len(right) - 1)
        inner = places.flatmap(
            lambda place: spoilt_within(right[place]).map(lambda wrong: [*right[:place], wrong, *right[place + 1 :]])
        )
        return st.one_of(inner, inner, JSON, st.just([]), st.just(right * 2))
    return JSON


def spoilt(right: Mapping[str, Any], junk: st.SearchStrategy[Any] = JSON) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy of objects with one to three fields of a valid one changed, missing or added."""
    names = st.sampled_from(sorted(right)) if right else st.nothing()
    changed = st.dictionaries(st.one_of(names, names, TEXTS), junk, min_size=1, max_size=3)
    gone = st.sets(names, max_size=1) if right else st.just(set())
    return st.builds(lambda new, out: {k: v for k, v in (dict(right) | new).items() if k not in out}, changed, gone)
