"""Readiness tries a write: a database that only answers questions is not well."""

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from workers.admin.system import health
from workers.context import Context


def test_a_database_that_is_read_only_is_not_well(context: Context, database_url: str) -> None:
    assert health(context)["database"] == "ok"
    name = sql.Identifier(str(conninfo_to_dict(database_url)["dbname"]))
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute(sql.SQL("alter database {} set default_transaction_read_only = on").format(name))
    assert "takes no writes" in health(context)["database"]
