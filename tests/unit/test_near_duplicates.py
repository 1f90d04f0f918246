"""Near-duplicates: how they differ from contradictions, and which fact is kept."""

from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.core import near_duplicates, signature
from workers.core.fidelity import normalise, pool
from workers.storage.packing import frequent_words

COMMON = frequent_words()

SAME = [
    ("Mira moved to Leipzig.", "Mira has moved to Leipzig."),
    ("The user prefers dark mode.", "User prefers dark mode"),
    ("The boat and the canal belong to Mira.", "Boat and canal belong to Mira"),
    ("Yes: the kitchen is upstairs.", "yes the Kitchen is upstairs"),
    ("Mira's got a red boat", "Mira has got a red boat"),
    ("She likes the boats.", "She likes the boat."),
    ("我的姐姐住在北京 她喜欢喝茶", "我的姐姐住在北京。她喜欢喝茶"),
    ("Die Straße ist laut.", "die Straße ist laut"),
    ("C\u00e9line aime le th\u00e9", "Ce\u0301line aime le the\u0301"),
    ("कमरा १२ ऊपर है।", "कमरा 12 ऊपर है।"),
    ("The code is 'Hunter2'.", "the code is Hunter2"),
    ("Die Straße hat 5 Häuser", "Die Straße hat (5) Häuser."),
    ("Mira Berg", "Mira Berg."),
]
DIFFERENT = [
    ("It holds 250 guests.", "It holds 350 guests."),
    ("It holds 250 guests.", "It holds 250 guests, they say."),
    ("Mira likes tea in the morning.", "Mira likes green tea in the morning."),
    ("Tea is at four.", "Tea is at five."),
    ("Mira moved to Leipzig.", "Mara moved to Leipzig."),
    ("Mira moved to Leipzig.", "Mira moved to Dresden."),
    ("Ask Will about the boat.", "Ask about the boat."),
    ("She likes coffee.", "She does not like coffee."),
    ("The door does open.", "The door doesn't open."),
    ("The door does open.", "The door doesn\u2019t open."),
    ("He came with sugar.", "He came without sugar."),
    ("Room 12", "Room 12 12"),
    ("Mira is married to Tom", "Mira was married to Tom"),
    ("Tom works at the mill", "Tom worked at the mill"),
    ("Tom has a boat", "Tom had a boat"),
    ("The bill is to be paid", "The bill has been paid"),
    ("I will take the boat", "I'd take the boat"),
    ("Anna and Ben have the key", "Anna or Ben has the key"),
    ("Anna can eat nuts", "Anna can eat most nuts"),
    ("Take a pill a day", "Take one pill a day"),
    ("Paul is small for the ride", "Paul is too small for the ride"),
    ("The front door is locked.", "Is the front door locked?"),
    ("The front door is locked.", "The front door is locked\uff1f"),
    ("The ticket is 5 €", "The ticket is 5 £"),
    ("I like 🍎 best", "I like 🍐 best"),
    ("The password is HuTzelbrot", "The password is hutZelbrot"),
    ("密码是 HuTz", "密码是 huTz"),
    ("Option -V prints the version", "Option -v prints the version"),
    ("Blood type A+", "Blood type A-"),
    ("It is -5 degrees there", "It is 5 degrees there"),
    ("The user likes dark chocolate", "The user hates dark chocolate"),
    ("The red boat belongs to Mira", "The green boat belongs to Mira"),
    ("Take the pill before breakfast", "Take the pill after breakfast"),
    ("The heating is on", "The heating is off"),
    ("My sister gave me the boat", "Your sister gave me the boat"),
    ("The train goes from Leipzig to Berlin", "The train goes to Leipzig from Berlin"),
    ("Mira lives in Leipzig", "Mira used to live in Leipzig"),
    ("Buy it if the price < 10", "Buy it if the price > 10"),
    ("कमरा १२ ऊपर है।", "कमरा 13 ऊपर है।"),
    ("Ana manages Ben.", "Ben manages Ana."),
    ("Ben moved to Porto and teaches in Braga.", "Ben teaches in Porto and moved to Braga."),
    ("Sie trinkt gern Kaffee", "Sie trinkt nicht gern Kaffee"),
    ("Le train part à sept heures", "Le train part à huit heures"),
    ("Mia sorella mangia noci", "Mia sorella non mangia noci"),
    ("Кофе он пьёт", "Кофе он не пьёт"),
    ("王伟住在北京", "李娜住在北京"),
    ("나는 커피를 좋아한다", "나는 커피를 안 좋아한다"),
    ("أحمد يسكن في القاهرة", "كريم يسكن في القاهرة"),
    ("सीता दिल्ली में रहती है", "सुता दिल्ली में रहती है"),
    ("Ba lives in Hanoi", "Bà lives in Hanoi"),
]


@pytest.mark.parametrize(("one", "two"), SAME)
def test_small_changes_of_wording_do_not_distinguish_facts(one: str, two: str) -> None:
    assert not near_duplicates.differ(near_duplicates.wording(one), near_duplicates.wording(two), COMMON)
    assert not near_duplicates.differ(near_duplicates.wording(two), near_duplicates.wording(one), COMMON)


@pytest.mark.parametrize(("one", "two"), DIFFERENT)
def test_a_figure_a_name_a_negation_or_the_order_of_words_does(one: str, two: str) -> None:
    assert near_duplicates.differ(near_duplicates.wording(one), near_duplicates.wording(two), COMMON)
    assert near_duplicates.differ(near_duplicates.wording(two), near_duplicates.wording(one), COMMON)


def unit_vectors(count: int, dims: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return normalise(np.random.default_rng(3).normal(size=(count, dims)).astype(np.float32))


def test_vectors_of_other_dims_are_compared_as_if_both_were_pooled() -> None:
    ones, twos = unit_vectors(5, 256), unit_vectors(10, 256)[5:]
    pooled = near_duplicates.cosines(pool(ones, 4), pool(twos, 4))
    assert near_duplicates.cosines(ones, pool(twos, 4)) == pytest.approx(pooled, abs=1e-6)
    assert near_duplicates.cosines(ones, twos) == pytest.approx((ones * twos).sum(axis=1), abs=1e-6)
    assert near_duplicates.cosines(np.zeros((1, 8), np.float32), np.ones((1, 8), np.float32)) == [0.0]


def test_signatures_estimate_similarity_and_near_duplicates_are_within_the_searched_distance() -> None:
    ones = unit_vectors(200, 256)
    noise = unit_vectors(400, 256)[200:]
    noise = normalise(noise - (noise * ones).sum(axis=1, keepdims=True) * ones)
    twos = near_duplicates.ALIKE * ones + np.sqrt(1 - near_duplicates.ALIKE**2) * noise
    signs = signature.encode(ones), signature.encode(twos.astype(np.float32))
    assert near_duplicates.estimated_cosines(*signs) == pytest.approx(np.full(200, near_duplicates.ALIKE), abs=0.06)
    differing = np.unpackbits(signs[0] ^ signs[1], axis=1).sum(axis=1)
    assert differing.max() <= near_duplicates.MOST_BITS


def ids(*numbers: int) -> list[UUID]:
    return [UUID(int=number) for number in numbers]


def test_a_chain_of_near_duplicates_merges_only_those_of_the_kept_one() -> None:
    one, two, three = ids(1, 2, 3)
    assert near_duplicates.groups([one, two, three], [(one, two), (two, three)], frozenset()) == [(one, [two])]
    assert near_duplicates.groups([two, one, three], [(one, two), (two, three)], frozenset()) == [(two, [one, three])]


def test_facts_that_must_stay_are_never_merged() -> None:
    one, two, three = ids(1, 2, 3)
    every = [(one, two), (one, three), (two, three)]
    assert near_duplicates.groups([one, two, three], every, frozenset([one, two])) == [(one, [three])]
    assert near_duplicates.groups([one, two], [(one, two)], frozenset([one, two])) == []


PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] != pair[1]), max_size=30)


@given(PAIRS, st.sets(st.integers(0, 9)), st.permutations(range(10)))
def test_each_fact_is_merged_once_into_a_better_similar_one(
    numbers: list[tuple[int, int]], staying: set[int], order: list[int]
) -> None:
    pairs = [(UUID(int=one), UUID(int=two)) for one, two in numbers]
    best_first, stay = ids(*order), frozenset(ids(*staying))
    found = near_duplicates.groups(best_first, pairs, stay)
    kept, gone = [keeper for keeper, _ in found], [one for _, merged in found for one in merged]
    assert len(gone) == len(set(gone))
    assert not set(gone) & (set(kept) | stay)
    alike = {frozenset(pair) for pair in pairs}
    assert all(frozenset((keeper, one)) in alike for keeper, merged in found for one in merged)
    assert all(best_first.index(keeper) < best_first.index(one) for keeper, merged in found for one in merged)
    left = set(best_first) - set(gone)
    assert not any(pair <= left - stay for pair in alike)
    assert found == near_duplicates.groups(best_first, [(two, one) for one, two in reversed(pairs)], stay)


@pytest.mark.parametrize("most", [1, 3, 200])
def test_the_nearest_signatures_are_those_that_differ_in_the_fewest_bits_and_of_equal_ones_the_first(most: int) -> None:
    random = np.random.default_rng(most)
    centres = random.integers(0, 256, (4, 128), dtype=np.uint8)
    others = np.repeat(centres, 50, axis=0)
    noise = random.random((200, 1024)) < random.choice([0, 0.05, 0.1, 0.18, 0.2], 200)[:, None]
    others ^= np.packbits(noise, axis=1)
    rows, places, bits = near_duplicates.nearest(others[::7], others, most)
    found = list(zip(rows.tolist(), places.tolist(), bits.tolist(), strict=True))
    differing = np.unpackbits(others[::7, None] ^ others, axis=2).sum(axis=2)
    expected = [
        (row, place, int(own[place]))
        for row, own in enumerate(differing)
        for place in np.argsort(own, kind="stable").tolist()[:most]
        if own[place] <= near_duplicates.MOST_BITS
    ]
    assert found == expected


def test_of_each_row_the_pairs_with_the_fewest_bits_are_kept() -> None:
    rows, bits = np.array([1, 0, 1, 1, 0, 3]), np.array([7, 5, 7, 2, 9, 4])
    assert near_duplicates.first_of_each(rows, bits, 2).tolist() == [1, 4, 3, 0, 5]
