"""Rows for PostgreSQL's binary COPY, made from whole arrays at once."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from workers.core.arrays import Bytes, Floats, Ints, Vectors
from workers.storage.connection import Connection

Column: TypeAlias = NDArray[Any]

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"
YEAR_2000 = 946_684_800
NEVER = np.iinfo(np.int64).max


def write(db: Connection, table: str, columns: dict[str, Column]) -> None:
    """Append rows to a table: arrays of numbers, or (n, width) bytes for types that PostgreSQL receives as bytes."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("copy {} ({}) from stdin (format binary)").format(sql.Identifier(table), names)
    with db.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(HEADER + _rows(list(columns.values())) + TRAILER)


def _rows(columns: Sequence[Column]) -> bytes:
    count = len(columns[0])
    parts = [_bytes(np.full(count, len(columns), np.int16))]
    for column in columns:
        payload = column if column.dtype == np.uint8 else _bytes(column)
        parts += [_bytes(np.full(count, payload.shape[1], np.int32)), payload]
    return np.hstack(parts).tobytes()


def instants(epoch_seconds: Floats) -> Ints:
    """Return instants as PostgreSQL stores them: microseconds since 2000, infinity for never."""
    finite = np.where(np.isfinite(epoch_seconds), epoch_seconds, YEAR_2000)
    stored = np.rint((finite - YEAR_2000) * 1e6).astype(np.int64)
    return np.where(np.isfinite(epoch_seconds), stored, NEVER)


def halfvecs(vectors: Vectors) -> Bytes:
    """Return (n, dims) vectors as pgvector receives them."""
    header = np.tile(np.array([vectors.shape[1], 0], ">i2").view(np.uint8), (len(vectors), 1))
    return np.hstack([header, _bytes(vectors.astype(np.float16))])


def bits(signatures: Bytes) -> Bytes:
    """Return (n, width) bytes as `bit` columns receive them."""
    header = np.tile(np.array([signatures.shape[1] * 8], ">i4").view(np.uint8), (len(signatures), 1))
    return np.hstack([header, signatures])


def _bytes(column: Column) -> Bytes:
    big_endian = np.ascontiguousarray(column.astype(column.dtype.newbyteorder(">")))
    return big_endian.view(np.uint8).reshape(len(column), -1)
