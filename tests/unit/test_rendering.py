"""How the dashboard writes spans of time."""

import pytest

from api.http.dashboard.rendering import DAY, HOUR, MINUTE, MONTH, YEAR, span


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
