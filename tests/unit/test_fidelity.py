"""Fidelity: buckets are powers of two and nest, and vectors keep the minimum number of dimensions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples

from workers.core.arrays import Vectors
from workers.core.fidelity import FINGERPRINT, FULL, PENDING, ladder, largest_bucket, name, normalise, pool

properties = examples(100)
seeds = st.integers(0, 2**32 - 1)


def random_vectors(seed: int, rows: int, dims: int) -> Vectors:
    return normalise(np.random.default_rng(seed).normal(size=(rows, dims)).astype(np.float32))


def test_each_fidelity_has_its_word() -> None:
    assert [name(code) for code in (PENDING, FULL, 2, 4, 16, FINGERPRINT)] == [
        "pending",
        "full",
        "pooled",
        "pooled",
        "pooled",
        "fingerprint",
    ]


@pytest.mark.parametrize(
    ("dims", "min_dims", "bucket"),
    [
        (256, 64, 4),
        (384, 64, 4),
        (1536, 64, 16),
        (256, 128, 2),
        (256, 256, 1),
        (255, 64, 1),
        (64, 64, 1),
        (300, 64, 4),
    ],
)
def test_the_widest_bucket_leaves_the_minimum_of_dimensions(dims: int, min_dims: int, bucket: int) -> None:
    assert largest_bucket(dims, min_dims) == bucket


@given(st.integers(1, 16_000), st.integers(1, 16_000))
@properties
def test_a_bucket_is_a_power_of_two_that_divides_and_leaves_enough(dims: int, min_dims: int) -> None:
    bucket = largest_bucket(dims, min_dims)

    assert bucket & (bucket - 1) == 0
    assert dims % bucket == 0
    assert bucket == 1 or dims // bucket >= min_dims


def test_below_0_7_pairs_are_pooled_below_a_half_fours_and_so_on() -> None:
    assert list(ladder(8)) == [(0.7, 2), (0.5, 4), (0.25, 8)]


def test_a_ladder_without_room_has_no_rungs() -> None:
    assert list(ladder(1)) == []


@given(st.sampled_from([256, 384, 1536]), st.floats(0.02, 0.699))
@properties
def test_the_ladder_is_the_smallest_power_of_two_that_reaches_the_documented_dims(dims: int, kept: float) -> None:
    wanted = math.ceil(dims / max(64, math.floor(dims * kept)))
    smallest = 2 ** math.ceil(math.log2(wanted))

    reached = max(bucket for below, bucket in ladder(largest_bucket(dims, 64)) if kept < below)

    assert reached == min(smallest, largest_bucket(dims, 64))


def test_pooling_averages_neighbours_and_scales_to_length_1() -> None:
    pooled = pool(np.array([[1.0, 3.0, 0.0, 4.0, 1.0, -1.0, 2.0, 2.0]], dtype=np.float32), 2)

    np.testing.assert_allclose(pooled, np.array([[2.0, 2.0, 0.0, 2.0]]) / math.sqrt(12), rtol=1e-6)


@given(seeds, st.sampled_from([256, 384, 1536]))
@properties
def test_pooling_twice_by_two_equals_pooling_once_by_four(seed: int, dims: int) -> None:
    vectors = random_vectors(seed, 3, dims)

    np.testing.assert_allclose(pool(pool(vectors, 2), 2), pool(vectors, 4), atol=1e-6)


@given(seeds, st.sampled_from([1, 2, 4, 8]))
@properties
def test_pooled_vectors_have_length_1_and_their_share_of_dimensions(seed: int, bucket: int) -> None:
    pooled = pool(random_vectors(seed, 4, 128), bucket)

    assert pooled.shape == (4, 128 // bucket)
    np.testing.assert_allclose(np.linalg.norm(pooled, axis=1), 1, atol=1e-5)


def test_a_row_of_zeros_stays_zeros() -> None:
    vectors = np.array([[0.0, 0.0], [3.0, 4.0]], dtype=np.float32)

    np.testing.assert_allclose(normalise(vectors), [[0.0, 0.0], [0.6, 0.8]], rtol=1e-6)
    assert not pool(np.zeros((1, 4), dtype=np.float32), 2).any()


def test_pooling_no_vectors_gives_no_vectors() -> None:
    assert pool(np.zeros((0, 256), dtype=np.float32), 4).shape == (0, 64)
