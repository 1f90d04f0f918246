"""Redaction: monitors see ids, the namespace and instants, but no text of any argument."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import JSON, examples

from api.cli import output
from workers import flower, redaction

ID = "01a1fd54-5b58-7629-9b8d-dfaf36313cae"
MARK = "Bramblewick"


@examples(200)
@given(
    st.dictionaries(st.sampled_from(["text", "value", "ids", "namespace", "now", "limit", "facts", "metadata"]), JSON),
    st.recursive(st.just(MARK), lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.just(MARK), inner))),
)
def test_texts_are_hidden_at_any_depth(arguments: dict[str, object], marked: object) -> None:
    names = [name for name in arguments if name != "namespace"]
    shown = redaction.arguments([marked], arguments | dict.fromkeys([*names, MARK], marked))
    assert MARK not in str(shown)
    assert all(letter in string.printable for part in shown for letter in part)


def test_ids_counts_and_the_namespace_are_shown() -> None:
    given = {"namespace": "mira", "id": ID, "facts": [1, 2], "text": "abc", "limit": 3, "touch": True, "value": 1111}
    _, shown = redaction.arguments([], given)
    assert shown == (
        f"(namespace=mira, id={ID}, facts=<2 items>, text=<3 characters>, limit=3, touch=True, value=a number)"
    )


@pytest.mark.parametrize("given", [None, "text", 7, [1], {"a": {"b": 1}}])
def test_arguments_may_have_any_type(given: object) -> None:
    assert all(isinstance(part, str) for part in redaction.arguments(given, given))


def test_an_event_keeps_only_the_class_of_an_error() -> None:
    fields = {"exception": f"InvalidInputError('{MARK}')", "traceback": MARK, "runtime": 0.5}
    assert redaction.event(fields) == {
        "exception": "InvalidInputError", "traceback": redaction.HIDDEN, "runtime": 0.5,
    }  # fmt: skip
    assert redaction.event({"result": MARK}) == {"result": "hidden"}
    assert redaction.kind(f"{MARK} says: (") == "Error"


@pytest.mark.parametrize("host", ["evil.com", "127.0.0.1.evil.com", "localhost.evil.com", "", "ebb.test.evil.com"])
def test_a_foreign_host_is_not_flowers_own(host: str) -> None:
    assert not flower.is_own_host(host, "ebb.test")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "::1", "10.0.0.7", "Ebb.test"])
def test_addresses_localhost_and_the_name_that_people_use_are_flowers_own(host: str) -> None:
    assert flower.is_own_host(host, "ebb.test")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("redis://:s3cret@h:6379/0", "redis://:•••@h:6379/0"),
        ("sentinel://:s3cret@a,b/0?master_name=m&sentinel_password=s3cret",
         "sentinel://:•••@a,b/0?master_name=m&sentinel_password=•••"),
        ("postgresql://ebb:s3cret?s3cret@h/db", "postgresql://ebb:•••@h/db"),
        ("postgresql://h/db?user=ebb&password=s3cret&sslpassword=s3cret",
         "postgresql://h/db?user=ebb&password=•••&sslpassword=•••"),
        ("host=h user=ebb password=s3cret\\ s3cret dbname=db", "host=h user=ebb password=••• dbname=db"),
        ("host=h password = 's3cret \\' s3cret' dbname=db", "host=h password = ••• dbname=db"),
        ("postgresql://a:5432,b:5432/db?host=/run/postgres", "postgresql://a:5432,b:5432/db?host=/run/postgres"),
    ],
)  # fmt: skip
def test_addresses_are_shown_without_passwords_in_any_form(address: str, shown: str) -> None:
    assert output.without_password(address) == shown
