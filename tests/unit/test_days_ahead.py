"""Numbers of days on a command line: `7` and `7d` are the same."""

from typing import Annotated, get_args

import pytest
from ebb.contract.operation import plain_type
from ebb.contract.reports import Days, ShowForecast
from pydantic import ValidationError


@pytest.mark.parametrize("given", [7, "7", "7d"])
def test_how_far_a_forecast_looks_for_endings_is_given_in_days_with_or_without_their_unit(given: int | str) -> None:
    assert ShowForecast.model_validate({"ending": given}).ending == 7


def test_what_may_have_a_unit_is_read_as_text_and_other_numbers_are_not() -> None:
    assert plain_type(ShowForecast.model_fields["ending"].annotation) is str
    assert plain_type(Days) is plain_type(Annotated[int | None, get_args(Days)[1]]) is int


@pytest.mark.parametrize("given", [367, "400d", 0])
def test_a_refused_number_of_days_is_answered_with_the_most_that_is_allowed(given: int | str) -> None:
    with pytest.raises(ValidationError, match="give whole days, 1d to 366d"):
        ShowForecast.model_validate({"ending": given})


@pytest.mark.parametrize("now", ["9999-12-29T00:00:00Z", "0001-01-02T00:00:00Z"])
def test_no_forecast_begins_where_the_calendar_ends(now: str) -> None:
    with pytest.raises(ValidationError, match="must lie in the years 101 to 9899"):
        ShowForecast.model_validate({"now": now})
    assert ShowForecast.model_validate({"now": "9898-12-31T00:00:00Z"}).now is not None
