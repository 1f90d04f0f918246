"""Arrays of UUIDs as parameters of statements, in binary."""

import struct
from uuid import UUID

import psycopg
from psycopg import postgres
from psycopg.adapt import Dumper
from psycopg.pq import Format


class Uuids(list[UUID]):
    """UUIDs that are sent as an array in a tenth of the time that psycopg takes for a list."""


class _UuidsDumper(Dumper):
    format = Format.BINARY
    oid = postgres.types["uuid"].array_oid
    element = postgres.types["uuid"].oid

    def dump(self, obj: Uuids) -> bytes:
        """Return the array in PostgreSQL's binary format."""
        if not obj:
            return struct.pack("!iiI", 0, 0, self.element)
        head = struct.pack("!iiIii", 1, 0, self.element, len(obj), 1)
        return head + b"".join([b"\x00\x00\x00\x10" + one.bytes for one in obj])


psycopg.adapters.register_dumper(Uuids, _UuidsDumper)
