"""Nodes of a Citus cluster on this machine, which tests kill."""

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

NODE_OF = """
    select nodename, nodeport from citus_shards
    where table_name = (select oid from pg_class where relname = 'facts' and relnamespace::regnamespace::text = %s)
"""


class Node:
    """The node that a URL leads to."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.data, self.programs = Path(self._asked(DATA)), Path(self._asked(PROGRAMS))

    def stop(self, mode: str) -> None:
        """Stop it in one of the modes of `pg_ctl`."""
        self._control("stop", f"--mode={mode}")

    def kill(self) -> None:
        """End it as a crash does."""
        self.stop("immediate")

    def start(self) -> None:
        """Start it, and return when it answers."""
        self._control("start", f"--log={self.data}.log")
        while not self._answers():
            time.sleep(0.1)

    def _answers(self) -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(self.url):
            return True
        return False

    def _control(self, *arguments: str) -> None:
        command = [str(self.programs / "pg_ctl"), f"--pgdata={self.data}", "--wait", *arguments]
        owner: dict[str, Any] = {} if os.getuid() else {"user": self.data.stat().st_uid}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **owner)

    def _asked(self, question: str) -> str:
        with psycopg.connect(self.url) as db:
            return str((db.execute(question.encode()).fetchone() or ("",))[0])


def address_of(url: str, schema: str | None = None) -> tuple[str, int]:
    """Return host and port of the node that holds the tables of a schema, by default the first one of the URL."""
    with psycopg.connect(url) as db:
        (own,) = db.execute("select current_schema()").fetchone() or ("",)
        return db.execute(NODE_OF, [schema or own]).fetchone() or ("", 0)


def holder(url: str, schema: str | None = None) -> Node:
    """Return the node that holds the tables of a schema, or skip the test that would kill one on another machine."""
    host, port = address_of(url, schema)
    node = Node(make_conninfo(url, host=host, port=port))
    if not node.data.exists():
        pytest.skip("the nodes are on other machines, where this test cannot kill them")
    return node


DATA = "select current_setting('data_directory')"
PROGRAMS = "select setting from pg_config where name = 'BINDIR'"
