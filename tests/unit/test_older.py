"""How interfaces report refusals by workers of an older version."""

import pytest
from celery.exceptions import NotRegistered
from ebb.contract.operation import EXAMPLE_ID
from ebb.contract.retention import Forgot

from api.transport import refusal
from workers.errors import InvalidInputError


def test_a_task_that_workers_do_not_know_is_named() -> None:
    assert "'memory.edit'" in str(refusal(NotRegistered("memory.edit")))


@pytest.mark.parametrize(
    "message",
    [
        "everywhere: is no argument of decay.plan; known are now, dry_run.",
        "namespace: is no argument of memory.purge; known are now; everywhere: is no argument of memory.purge.",
        "count_turns: is no argument of memory.store_many; known are facts.",
        "count_turns: is no field of a fact; known are text.",
    ],
)
def test_an_argument_of_this_version_says_that_workers_are_older(message: str) -> None:
    assert str(refusal(InvalidInputError(message))).startswith("The workers are of an older version")


@pytest.mark.parametrize(
    "error",
    [
        InvalidInputError("colour: is no argument of memory.recall; known are query."),
        InvalidInputError("since: is no argument of memory.recall; known are query."),
        InvalidInputError("text: cannot store empty fact text."),
        ValueError("everywhere: is no argument of decay.plan"),
    ],
)
def test_any_other_error_is_left_as_it_is(error: Exception) -> None:
    assert refusal(error) is None


def test_outcomes_of_older_workers_without_an_action_are_read() -> None:
    older = [{"id": EXAMPLE_ID, "error": "It was stored again."}, {"id": EXAMPLE_ID, "text": "Tea at four."}]
    assert [one.action for one in Forgot.model_validate({"results": older}).results] == ["refused", "matching"]
