"""Signatures: equal in every process, close to the true cosine, and order-preserving."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples

from workers.core.arrays import Floats, Vectors
from workers.core.fidelity import normalise
from workers.core.signature import BITS, encode, estimate, projection

DIMS = 256
properties = examples(50)


def random_vectors(seed: int, rows: int, dims: int = DIMS) -> Vectors:
    return normalise(np.random.default_rng(seed).normal(size=(rows, dims)).astype(np.float32))


def at_cosines(query: Vectors, cosines: Floats, seed: int) -> Vectors:
    """Return one unit vector per given cosine with the unit query."""
    others = random_vectors(seed, len(cosines), len(query))
    across = normalise(others - np.outer(others @ query, query))
    return (cosines[:, None] * query + np.sqrt(1 - cosines[:, None] ** 2) * across).astype(np.float32)


def test_the_projection_never_changes() -> None:
    # Stored signatures depend on these values.
    matrix = projection(DIMS)

    assert matrix.shape == (BITS, DIMS)
    np.testing.assert_allclose(
        matrix[0, :6], [-0.24708483, 2.1121774, -2.0905588, -0.21455748, -0.23023988, 1.9854949], rtol=1e-5
    )
    np.testing.assert_allclose(matrix[-1, -3:], [0.58101946, 1.2182459, -0.5042161], rtol=1e-5)


def test_another_process_projects_equally() -> None:
    program = (
        "import hashlib, sys\n"
        "from workers.core.signature import projection\n"
        "sys.stdout.write(hashlib.sha256(projection(256).tobytes()).hexdigest())"
    )

    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert answer.stdout == hashlib.sha256(projection(DIMS).tobytes()).hexdigest()


@pytest.mark.parametrize("dims", [2, 256, 384, 1024, 1536])
def test_projections_are_a_tight_frame_as_long_as_standard_normal_numbers(dims: int) -> None:
    matrix = projection(dims).astype(np.float64)
    shorter = matrix.T if dims <= BITS else matrix

    np.testing.assert_allclose(shorter @ shorter.T, max(BITS, dims) * np.eye(len(shorter)), atol=1e-3)
    assert float(matrix.mean()) == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("dims", [2, 64, 256, 384, 1536])
def test_a_signature_is_128_bytes_for_any_dims(dims: int) -> None:
    signatures = encode(random_vectors(1, 3, dims))

    assert signatures.shape == (3, 128)
    assert signatures.dtype == np.uint8
    assert estimate(random_vectors(2, 1, dims)[0], signatures).shape == (3,)


def test_a_vector_has_the_same_signature_alone_as_among_others() -> None:
    rows = projection(256)[np.arange(256) * 4].astype(np.float64)
    vectors = np.random.default_rng(7).normal(size=rows.shape)
    vectors -= rows * (np.sum(vectors * rows, axis=1) / np.sum(rows * rows, axis=1))[:, None]  # orthogonal to one row
    given = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    alone = np.concatenate([encode(given[place : place + 1]) for place in range(len(given))])
    assert (encode(given) == alone).all()


def test_no_vectors_give_no_signatures_and_no_cosines() -> None:
    signatures = encode(np.zeros((0, DIMS), dtype=np.float32))

    assert signatures.shape == (0, 128)
    assert estimate(random_vectors(1, 1)[0], signatures).shape == (0,)


def test_a_signature_knows_the_direction_and_not_the_length() -> None:
    vectors = random_vectors(3, 5)

    np.testing.assert_array_equal(encode(vectors * 4), encode(vectors))
    np.testing.assert_array_equal(encode(-vectors), ~encode(vectors))


def test_the_estimate_is_near_the_true_cosine() -> None:
    # Each of 1,024 independent signs would estimate with a standard deviation of at most sqrt(pi / 2); four times as
    # many as there are dimensions, all distinct, err by little more than half of that.
    deviation = np.sqrt(np.pi / 2 / BITS)
    query = random_vectors(4, 1)[0]
    cosines = np.linspace(-0.99, 0.99, 1_000)

    errors = estimate(query, encode(at_cosines(query, cosines, seed=5))) - cosines

    assert np.abs(errors).max() < 2.5 * deviation
    assert np.sqrt(np.mean(errors**2)) < 0.7 * deviation
    assert abs(errors.mean()) < deviation


@given(st.integers(0, 2**32 - 1), st.sampled_from([64, 256, 384]))
@properties
def test_clearly_separated_vectors_keep_their_order(seed: int, dims: int) -> None:
    query = random_vectors(seed, 1, dims)[0]
    cosines = np.array([0.95, 0.6, 0.2, -0.2, -0.6])

    estimated = estimate(query, encode(at_cosines(query, cosines, seed=seed + 1)))

    assert np.argsort(-estimated).tolist() == [0, 1, 2, 3, 4]


@given(st.integers(0, 2**32 - 1))
@properties
def test_estimates_are_cosines_and_a_vector_is_nearest_to_itself(seed: int) -> None:
    vectors = random_vectors(seed, 20)

    estimated = estimate(vectors[7], encode(vectors))

    assert ((estimated >= -1) & (estimated <= 1)).all()
    assert int(estimated.argmax()) == 7
    assert estimated[7] == pytest.approx(1, abs=0.1)
