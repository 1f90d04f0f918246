"""Batches are cut exactly where the order of their facts matters."""

from uuid import UUID

from workers.core.intent import ADD, Intent, independent_stretches, requested

A, B, C, D = (UUID(int=number) for number in range(1, 5))


def cut(*facts: tuple[UUID, str, UUID | None], known: dict[UUID, str] | None = None) -> list[list[int]]:
    """Return the stretches of facts given as id, text and target."""
    hashes = [text.encode() for _, text, _ in facts]
    said = {id_: text.encode() for id_, text in (known or {}).items()}
    return independent_stretches(
        [id_ for id_, _, _ in facts], hashes, [requested(target) for _, _, target in facts], said
    )


def test_nothing_asked_is_an_addition() -> None:
    assert requested(None) == ADD == Intent()
    assert requested(A).requested


def test_facts_that_concern_none_are_stored_at_once_even_if_they_repeat_each_other() -> None:
    assert cut((A, "a", None), (B, "a", None), (A, "c", None)) == [[0, 1, 2]]


def test_facts_that_concern_different_ones_are_stored_at_once() -> None:
    assert cut((A, "a", C), (B, "b", D), known={C: "c", D: "d"}) == [[0, 1]]


def test_a_chain_is_cut_at_every_link() -> None:
    assert cut((A, "a", None), (B, "b", A), (C, "c", B)) == [[0], [1], [2]]


def test_two_that_concern_the_same_are_cut() -> None:
    assert cut((A, "a", C), (B, "b", C), known={C: "c"}) == [[0], [1]]


def test_a_text_equal_to_that_of_a_concerned_fact_before_or_after_it_is_cut() -> None:
    assert cut((A, "c", None), (B, "b", C), known={C: "c"}) == [[0], [1]]
    assert cut((B, "b", C), (A, "c", None), known={C: "c"}) == [[0], [1]]
    assert cut((B, "b", C), (A, "b", None), known={C: "c"}) == [[0], [1]]


def test_after_a_cut_only_what_follows_it_counts() -> None:
    assert cut((A, "a", None), (B, "b", A), (C, "c", None), (D, "d", None)) == [[0], [1, 2, 3]]


def test_an_empty_batch_is_one_empty_stretch() -> None:
    assert cut() == [[]]
