"""Columns: whole arrays as PostgreSQL's binary arrays, packed at once rather than value by value."""

import struct
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.adapt import Dumper
from psycopg.pq import Format

from workers.core.arrays import Bools, Bytes, Floats, Ints, Key, Vectors
from workers.storage.connection import Connection

BOOL, BYTEA, BIGINT, INTEGER, TEXT, FLOAT, BIT, UUIDS = 16, 17, 20, 23, 25, 701, 1560, 2950
"""The types of elements, as `pg_type` numbers them."""

HEADER = struct.Struct(">5i")
EMPTY = struct.Struct(">3i")
BIT_HEADER = 4
"""Size of the number of bits before the bits."""

NULL = b"\xff\xff\xff\xff"


class Column(bytes):
    """A packed array; the statement casts its parameter to the type of the array."""


class _ColumnDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Column) -> Column:
        return obj


psycopg.adapters.register_dumper(Column, _ColumnDumper)


def bools(values: Bools) -> Column:
    """Return n flags as `bool[]`."""
    return _packed(BOOL, [np.asarray(values, "?")])


def ints(values: Ints | Sequence[int]) -> Column:
    """Return n numbers as `int[]`."""
    return _packed(INTEGER, [np.asarray(values, ">i4")])


def bigints(values: Ints | Sequence[int]) -> Column:
    """Return n numbers as `bigint[]`."""
    return _packed(BIGINT, [np.asarray(values, ">i8")])


def floats(values: Floats) -> Column:
    """Return n numbers as `float8[]`."""
    return _packed(FLOAT, [np.asarray(values, ">f8")])


def texts(values: Sequence[str | None]) -> Column:
    """Return n texts, or nulls, as `text[]`."""
    return _joined(TEXT, [None if one is None else one.encode() for one in values])


def byteas(values: Sequence[bytes]) -> Column:
    """Return n byte strings as `bytea[]`."""
    return _joined(BYTEA, values)


def uuids(ids: Iterable[UUID]) -> Column:
    """Return n ids as `uuid[]`."""
    return keys([id_.bytes for id_ in ids])


def keys(ids: Sequence[Key]) -> Column:
    """Return n ids as `uuid[]`."""
    return _packed(UUIDS, [np.frombuffer(b"".join(ids), "V16")])


def bits(signatures: Bytes) -> Column:
    """Return (n, width) bytes as `bit[]`."""
    length = np.full((len(signatures), 1), signatures.shape[1] * 8, ">i4").view(np.uint8)
    return _packed(BIT, [_rows(np.hstack([length, signatures]))])


def halfvecs(db: Connection, groups: Iterable[Vectors]) -> Column:
    """Return the rows of (m, dims) arrays, whose dims may differ, as `halfvec[]`."""
    known = db.adapters.types["halfvec"]
    return _packed(known.oid, [_halfvecs(group) for group in groups])


def floats_of(arrays: Sequence[bytes], size: int) -> Floats:
    """Return n results of `array_send`, each of a `float8[]` with `size` elements, as (n, size) numbers."""
    header = HEADER if size else EMPTY
    kind = np.dtype([("head", f"V{header.size}"), ("items", [("size", ">i4"), ("value", ">f8")], (size,))])
    return np.frombuffer(b"".join(arrays), kind)["items"]["value"].astype(np.float64)


def column_of(array: bytes | None) -> Floats:
    """Return the result of `array_send` of a `float8[]` as n numbers; none for null."""
    return _elements(array, ">f8").astype(np.float64)


def keys_of(array: bytes | None) -> list[Key]:
    """Return the result of `array_send` of a `uuid[]` as n ids; none for null."""
    return _elements(array, "V16").tolist()


def bits_of(array: bytes | None, width: int) -> Bytes:
    """Return the result of `array_send` of a `bit[]` as (n, width) bytes; none for null."""
    sized = np.ascontiguousarray(_elements(array, f"V{BIT_HEADER + width}"))
    return sized.view(np.uint8).reshape(-1, BIT_HEADER + width)[:, BIT_HEADER:]


def _elements(array: bytes | None, kind: str) -> NDArray[Any]:
    """Return the elements of an array, which has no elements below the size of its header."""
    return np.frombuffer((array or b"")[HEADER.size :], [("size", ">i4"), ("value", kind)])["value"]


def _halfvecs(vectors: Vectors) -> NDArray[Any]:
    dims = np.tile(np.array([vectors.shape[1], 0], ">i2").view(np.uint8), (len(vectors), 1))
    return _rows(np.hstack([dims, np.ascontiguousarray(vectors, ">f2").view(np.uint8)]))


def _rows(data: Bytes) -> NDArray[Any]:
    """Return (n, width) bytes as n values of that width."""
    return np.ascontiguousarray(data).view(f"V{data.shape[1]}").ravel()


def _packed(kind: int, groups: Sequence[NDArray[Any]]) -> Column:
    count = sum(map(len, groups))
    if not count:
        return Column(EMPTY.pack(0, 0, kind))
    return Column(HEADER.pack(1, 0, kind, count, 1) + b"".join(map(_sized, groups)))


def _joined(kind: int, values: Sequence[bytes | None]) -> Column:
    """Return an array of values that differ in size; the flag for nulls may be set where there are none."""
    if not values:
        return Column(EMPTY.pack(0, 0, kind))
    sized = [NULL if one is None else len(one).to_bytes(4) + one for one in values]
    return Column(HEADER.pack(1, 1, kind, len(values), 1) + b"".join(sized))


def _sized(values: NDArray[Any]) -> bytes:
    """Return the values, each after its size."""
    sized = np.empty(len(values), [("size", ">i4"), ("value", values.dtype)])
    sized["size"], sized["value"] = values.dtype.itemsize, values
    return sized.tobytes()
