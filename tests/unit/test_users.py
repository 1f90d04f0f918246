"""Users of another product: each has a namespace, from which the user's name is recovered."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from api.contrib.foreign import namespace_of, user_of
from workers.errors import InvalidInputError
from workers.validation import namespace_name

users = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=10)


@given(users)
@example("u::")
@example("u::ana")
@example("u::auth0+7C5f7c")
@example("Ana Lee")
@example("+20")
@example("团队/安娜")
def test_a_user_is_known_by_their_namespace(user: str) -> None:
    assert user_of(namespace_name(namespace_of(user))) == user


@given(users, users)
@example("a b", "u::a+20b")
@example("a b", "a+20b")
def test_no_two_users_have_one_namespace(one: str, other: str) -> None:
    assert (namespace_of(one) == namespace_of(other)) == (one == other)


@pytest.mark.parametrize("name", ["mira", "user-1", "ana@example.org", "team/ana:7", "a+b"])
def test_valid_user_names_are_used_unchanged(name: str) -> None:
    assert (namespace_of(name), user_of(name)) == (name, name)


@pytest.mark.parametrize("namespace", ["u::a b", "u::a+2", "u::a+7c", "u::+FF", "u::ana", "u::a/b"])
def test_a_namespace_that_no_user_was_given_is_its_own_user(namespace: str) -> None:
    assert user_of(namespace) == namespace


def test_a_user_with_too_long_a_name_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"user_id: .* is too long"):
        namespace_of("安" * 20)
