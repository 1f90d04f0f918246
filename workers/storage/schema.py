"""The schema: created from `schema.sql` or migrated, and verified before use."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from psycopg import sql
from psycopg.errors import DuplicateFunction, DuplicateObject, DuplicateTable, InsufficientPrivilege, UniqueViolation
from psycopg.types.json import Json

from workers.errors import SchemaError, SettingsError, UnavailableError
from workers.storage import migrations, namespaces, routing, shards
from workers.storage.connection import CONFIGURATION, SEARCH, Connection, number, outside_pool, scalar
from workers.storage.refusals import cause_of

COMPATIBILITY = "select max(version) from schema_version"

IDENTITY = """
    select current_database() || ' (schema ' || current_schema() || ', made '
        || to_char(min(applied_at), 'YYYY-MM-DD HH24:MI:SS.US') || ')'
    from schema_migrations
"""

OLDEST_POSTGRES = 16
"""With it a column can be created with its way of storage."""

OLDEST_PGVECTOR = 0, 8
"""With it a search of an index goes on until a filter leaves enough results."""

PGVECTOR = """
    select coalesce(installed_version, default_version) from pg_available_extensions where name = 'vector'
"""

READ_ONLY = "select current_setting('transaction_read_only')::boolean"

SERVERS = r"""
    select 'PostgreSQL ' || current_setting('server_version') || ' with pgvector ' || extversion
        || case when current_setting('transaction_timeout', true) is null
            then '; it is older than 17, so a worker that hangs within a write keeps its locks until its host is gone'
            else '' end
        || case when current_setting('synchronous_commit') = 'off'
            then E'\nwarning: synchronous_commit is off, so a crash of the server loses the last acknowledged writes'
            else '' end
        || case when current_setting('fsync') = 'off'
            then E'\nwarning: fsync is off, so a failure of power may damage the database' else '' end
    from pg_extension where extname = 'vector'
"""

MISSING_SCHEMA = """
    select name from trim(split_part(current_setting('search_path'), ',', 1)) as given
    cross join lateral (select case when given like '"%' then trim('"' from given) else lower(given) end as name) as own
    where name <> '$user' and has_schema_privilege(to_regnamespace(quote_ident(name)), 'usage') is not true
"""
"""The first schema of the search path if the role cannot use it: what follows would be used instead."""

ON_CITUS = "select current_schema() from pg_extension where extname = 'citus'"

DISTRIBUTE = "select citus_schema_distribute(quote_ident(current_schema())::regnamespace)"

# Triggers and functions read other tables of their schema, which lie on the same node, so no query sees a part of the
# rows. The coordinator passes on `set local`, but nothing of its session to the sessions of the nodes.
ON_EVERY_NODE = {
    "citus.allow_nested_distributed_execution": "on",
    "citus.enable_unsafe_triggers": "on",
    "citus.propagate_set_commands": "local",
    **{name: CONFIGURATION[name] for name in ("plan_cache_mode", *SEARCH, "jit", "timezone")},
}
SET_ON_A_NODE = "alter role current_user in database {} set {} to {};"
# A role that is no superuser may set what belongs to pgvector only in a session that has loaded it.
ALL_ON_A_NODE = "begin perform '[1]'::{}.vector; set local citus.enable_ddl_propagation = off; {} end"
DO_ON_EVERY_NODE = "select result from run_command_on_all_nodes(%(command)s) where not success limit 1"
SCHEMA_OF_PGVECTOR = "select extnamespace::regnamespace::text from pg_extension where extname = 'vector'"
SET_HERE = "select set_config(name, value, false) from json_each_text(%(settings)s) as given (name, value)"

MOST_NAMED = 5
"""How many differences an error names: where the server only runs with the rest of Ebb, nothing else can show them."""

STATED = {
    "version": r"insert into schema_migrations \(number, name\) values \((\d+), 'snapshot'\)",
    "compatibility": r"insert into schema_version \(version\) values \((\d+)\)",
}
"""Patterns that find the numbers in `schema.sql`."""


def apply(database_url: str, report: Callable[[str], None] = lambda _: None, count: int = 1) -> list[int]:
    """Bring all shards of a database to this version's schema; return the numbers of the migrations that ran.

    A database that is up to date, or that a newer version has migrated, is left unchanged. An interrupted migration
    continues; concurrent calls wait for each other.

    Raises:
        SchemaError: the schema is not one that this version can use or migrate, or pgvector is missing.
        UnavailableError: the server does not answer, or takes no writes.
        SettingsError: a namespace is on a shard that is not among these.
    """
    ran: set[int] = set()
    for shard in range(count):
        with _of_shard(shard, count):
            ran.update(_apply(database_url, report, count))
    return sorted(ran)


@contextmanager
def _of_shard(shard: int, count: int) -> Iterator[None]:
    """Work on a shard; errors name it, unless it is the first."""
    try:
        with routing.at(shard, count):
            yield
    except SchemaError as error:
        if not shard:
            raise
        raise SchemaError(f"Shard {shard}: {error}") from None


def _apply(database_url: str, report: Callable[[str], None], count: int) -> list[int]:
    with migrations.exclusive(database_url, report) as db:
        check_writable(db)
        with _explained():
            missing = scalar(db, MISSING_SCHEMA)
            if missing and scalar(db, "select to_regnamespace(quote_ident(%(name)s)) is null", {"name": missing}):
                db.execute(sql.SQL("create schema {}").format(sql.Identifier(missing)))
        _check_usable(db)
        had = migrations.number(db)
        if had < version():
            _check_coordinator(db)
        if had == 0:
            _check_encoding(db)
            _check_locale(db)
        _check_servers(db)
        _prepare_nodes(db, new=had == 0)
        if had == 0:
            with _explained(), db.transaction():
                for statement in migrations.statements(snapshot()):
                    db.execute(statement.encode())
            shards.number_namespaces(db)
        elif had < version():
            migrations.run(database_url, db, migrations.known(), report)
        verify(db)
        if not routing.current():
            shards.check(db, count)
    return [one.number for one in migrations.known() if 0 < had < one.number]


@contextmanager
def _explained() -> Iterator[None]:
    """Explain why the schema cannot be made: the role may not, or the database has objects of these names."""
    try:
        yield
    except InsufficientPrivilege as error:
        remedy = "Let a superuser prepare the database once, as api/deploy/role.sql does."
        raise SchemaError(f"The role cannot make the schema: {cause_of(error)}. {remedy}") from None
    except (DuplicateTable, DuplicateObject, DuplicateFunction, UniqueViolation) as error:
        remedy = "Give Ebb an empty database, or a schema of its own; drop what a restore that failed has left."
        raise SchemaError(f"The database has objects with names of Ebb's schema: {cause_of(error)}. {remedy}") from None


def check(db: Connection) -> None:
    """Raise `SchemaError` unless this version of Ebb can work with the schema, by its numbers."""
    _check_usable(db)
    had = migrations.number(db)
    if had < version():
        what = "no schema of Ebb" if had == 0 else f"schema {had}"
        raise SchemaError(f"The database has {what}, this version of Ebb needs schema {version()}: run `ebb migrate`.")
    if number(db, COMPATIBILITY) > compatibility():
        raise SchemaError(
            f"The database has schema {had}, which this version of Ebb (schema {version()}) cannot work with: "
            "upgrade Ebb."
        )


def check_writable(db: Connection) -> None:
    """Raise `UnavailableError` if PostgreSQL takes no writes, as a standby does."""
    if scalar(db, READ_ONLY):
        raise UnavailableError(
            "PostgreSQL takes no writes: it is a standby, or `default_transaction_read_only` is on. Give the "
            "address of the primary, or promote this one; in a home of `ebb up`, remove `standby.signal` from "
            "the folder `postgres`."
        )


WITHOUT_RIGHTS = """
    select string_agg(relname::text, ', ' order by relname)
    from pg_class
    where relnamespace = quote_ident(current_schema())::regnamespace and relkind in ('r', 'p')
        and relname = any(%(tables)s)
        and not (has_table_privilege(oid, 'select') and has_table_privilege(oid, 'insert')
            and has_table_privilege(oid, 'update') and has_table_privilege(oid, 'delete'))
"""

OF_MIGRATIONS = "schema_migrations", "schema_version"
"""Tables that only `ebb migrate` writes."""


def check_rights(db: Connection) -> None:
    """Raise `SchemaError` if the role may not read and write each table: some tasks would fail, and others not."""
    columns = (name.removeprefix("column ") for name in expected_catalogue()["objects"] if name.startswith("column "))
    tables = {column.partition(".")[0] for column in columns}.difference(OF_MIGRATIONS)
    if lacking := scalar(db, WITHOUT_RIGHTS, {"tables": [*tables]}):
        raise SchemaError(
            f"The role {db.info.user!r} may not read and write {lacking}: have the owner of the tables "
            "`grant select, insert, update, delete` on them to it."
        )


def identity(db: Connection) -> str:
    """Return what distinguishes this database from others, and what a backup that is restored in its place keeps."""
    return str(scalar(db, IDENTITY))


def verify(db: Connection) -> None:
    """Raise `SchemaError` unless checks pass and the live catalogue is what this version of Ebb works with."""
    check(db)
    _check_servers(db)
    check_rights(db)
    found = differences(db)
    if found:
        more = f", and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        named = f"{'; '.join(found[:MOST_NAMED])}{more}"
        if (had := migrations.number(db)) > version():
            lacks = f"lacks what this version of Ebb (schema {version()}) works with"
            raise SchemaError(f"The database has schema {had}, which {lacks}: {named}. Upgrade Ebb.")
        raise SchemaError(
            f"The database's schema is not the one that this version of Ebb works with: {named}. Undo the change, "
            'restore a backup, or export with the version that wrote it and import; the manual, "Repair" in Backups '
            "and upgrades, says how to reach the server of `ebb up` meanwhile."
        )


def verify_at(database_url: str, count: int = 1, check: Callable[[Connection], None] = verify) -> None:
    """Raise `EbbError` unless each shard of the database at a URL passes a check, and no namespace is on another."""
    if not database_url:
        raise SettingsError("EBB_DATABASE_URL is not set. Set it, or let `ebb up` start servers of its own.")
    for shard in range(count):
        with _of_shard(shard, count), outside_pool(database_url) as db:
            check(db)
            if not shard:
                shards.check(db, count)


def verify_direct(database_url: str, direct_url: str) -> None:
    """Raise `SettingsError` if the address that passes by a pooler leads to another database."""
    if direct_url in ("", database_url):
        return
    pooled, direct = map(_identity_at, (database_url, direct_url))
    if pooled != direct:
        raise SettingsError(
            f"EBB_DIRECT_DATABASE_URL leads to {direct}, and EBB_DATABASE_URL to {pooled}: give two addresses of the "
            "same database."
        )


def _identity_at(database_url: str) -> str:
    with outside_pool(database_url) as db:
        return identity(db) if migrations.number(db) else "a database without a schema of Ebb"


def differences(db: Connection) -> list[str]:
    """Return the differences between the live catalogue and the expected one.

    In a database that a newer version has migrated only missing objects count.
    """
    found = catalogue_differences(live_catalogue(db), expected_catalogue())
    newer = migrations.number(db) > version()
    return [one for one in found if one.endswith(" is missing")] if newer else found


def all_differences(database_url: str, count: int) -> list[str]:
    """Return the differences of all shards; those of further shards name the shard.

    Raises:
        SchemaError: a shard has no schema, or one of another version, or the role lacks a right there.
    """
    found: list[str] = []
    for shard in range(count):
        with _of_shard(shard, count), outside_pool(database_url) as db:
            check(db)
            check_rights(db)
            found += [f"shard {shard}: {one}" if shard else one for one in differences(db)]
    return found


def version_of(database_url: str) -> int:
    """Return the number of the newest migration of a database."""
    with outside_pool(database_url) as db:
        return migrations.number(db)


def described(had: int) -> str:
    """Return the version of a database's schema, and that of this version of Ebb where the database is newer."""
    return f"version {had}" if had <= version() else f"version {had}, of a newer Ebb: this one has {version()}"


def servers(db: Connection) -> str:
    """Return the versions of PostgreSQL and pgvector, and what a crash of the server may lose."""
    return scalar(db, SERVERS) or "PostgreSQL without pgvector"


def version() -> int:
    """Return the number of the schema in `schema.sql`."""
    return _stated("version")


def compatibility() -> int:
    """Return the newest `schema_version` that this version of Ebb can work with."""
    return _stated("compatibility")


def _check_servers(db: Connection) -> None:
    """Raise `SchemaError` unless PostgreSQL and pgvector are new enough for the schema."""
    major = number(db, MAJOR)
    if major < OLDEST_POSTGRES:
        raise SchemaError(f"The server is PostgreSQL {major}: Ebb needs {OLDEST_POSTGRES} or newer.")
    found = scalar(db, PGVECTOR)
    package = f"package `postgresql-{major}-pgvector`"
    if found is None:
        raise SchemaError(f"PostgreSQL has no pgvector: install it on the server ({package}).")
    if [int(part) for part in found.split(".")] < list(OLDEST_PGVECTOR):
        needed = ".".join(map(str, OLDEST_PGVECTOR))
        raise SchemaError(
            f"The database has pgvector {found}, Ebb needs {needed} or newer: install that on the server ({package}), "
            "then run `alter extension vector update` in the database if it has the extension."
        )


def _check_encoding(db: Connection) -> None:
    encoding = db.info.parameter_status("server_encoding")
    if encoding not in ("UTF8", None):  # a pooler need not tell
        raise SchemaError(
            f"The database's encoding is {encoding}, which cannot store every text: make one with "
            "`createdb --template=template0 --encoding=UTF8 NAME`."
        )


def _check_locale(db: Connection) -> None:
    if scalar(db, "select lower('I')") != "i":  # as in Turkish; stems and names have the dotted one
        raise SchemaError(
            "The database's locale has another small letter for I, so words and names would be missed: make one with "
            "`createdb --template=template0 --encoding=UTF8 --locale=C.UTF-8 NAME`."
        )


def _check_usable(db: Connection) -> None:
    if missing := scalar(db, MISSING_SCHEMA):
        raise SchemaError(
            f"The database has no schema {missing}, the first of the search path, that the role {db.info.user!r} may "
            "use: run `ebb migrate`; if it is there, have its owner `grant usage on` it to the role."
        )


def _check_coordinator(db: Connection) -> None:
    if namespaces.is_on_a_node(db):
        raise SchemaError(
            "Only the coordinator of Citus makes schemas and changes them: run `ebb migrate` with its address in "
            "EBB_DATABASE_URL."
        )


def _prepare_nodes(db: Connection, *, new: bool) -> None:
    """Set up the nodes of Citus, if it is installed; distribute a new schema, so that they know the objects in it.

    Raises:
        SchemaError: the schema is `public`, which Citus does not place, or a node refuses the settings.
    """
    schema = scalar(db, ON_CITUS)
    if schema is None or (schema == "public" and not new):
        return
    if schema == "public":
        raise SchemaError(
            "Citus does not place the schema `public`: name another at the end of EBB_DATABASE_URL, and it is made: "
            "?options=-csearch_path%3Debb%2Cpublic"
        )
    database = sql.Identifier(db.info.dbname)
    settings = [
        sql.SQL(SET_ON_A_NODE).format(database, sql.Identifier(name), sql.Literal(value))
        for name, value in ON_EVERY_NODE.items()
    ]
    body = sql.SQL(ALL_ON_A_NODE).format(sql.SQL(scalar(db, SCHEMA_OF_PGVECTOR)), sql.SQL("").join(settings))
    command = sql.SQL("do {}").format(body.as_string(db)).as_string(db)
    if refused := scalar(db, DO_ON_EVERY_NODE, {"command": command}):
        raise SchemaError(f"A node of Citus does not take the settings of Ebb's role: {refused.strip()}.")
    db.execute(SET_HERE, {"settings": Json(ON_EVERY_NODE)})
    if new:
        db.execute(DISTRIBUTE)


@cache
def _stated(what: str) -> int:
    found = re.search(STATED[what], snapshot())
    if found is None:
        raise SchemaError(f"schema.sql does not state its {what}: reinstall Ebb.")
    return int(found[1])


@cache
def snapshot() -> str:
    """Return the SQL of `schema.sql`."""
    here = Path(__file__).resolve()
    packaged = here.parents[1] / "schema.sql"
    return (packaged if packaged.exists() else here.parents[2] / "schema.sql").read_text(encoding="utf-8")


# Definitions of all objects, without oids and statistics, so that they are stable. Objects of extensions are left out,
# and the two objects that depend on the configured language are only expected to exist. `not null` is part of the
# column, though PostgreSQL 18 and later has constraints for it.
OBJECTS = """
    with own as (
        select oid, relname, relkind, reloptions, quote_ident(current_schema()) || '.' as path from pg_class
        where relnamespace = quote_ident(current_schema())::regnamespace and relkind in ('r', 'p', 'v')
            and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = pg_class.oid
                and deptype = 'e')
    )
    select 'table ' || relname, coalesce(array_to_string(reloptions, ', '), '')
    from own where relkind <> 'v'
    union all
    select 'column ' || relname || '.' || attname,
        format_type(atttypid, atttypmod) || case when attnotnull then ' not null' else '' end
            || case attidentity when '' then '' else ' identity' end
            || case attgenerated when '' then coalesce(' default ' || pg_get_expr(adbin, adrelid), '')
                else ' generated ' || pg_get_expr(adbin, adrelid) end
            || ' storage ' || attstorage::text
            || ' at ' || row_number() over (partition by own.oid order by attnum)
    from own
    join pg_attribute on attrelid = own.oid and attnum > 0 and not attisdropped
    left join pg_attrdef on adrelid = own.oid and adnum = attnum
    where relkind <> 'v'
    union all
    select 'constraint ' || relname || '.' || conname, pg_get_constraintdef(pg_constraint.oid)
    from own join pg_constraint on conrelid = own.oid
    where contype <> 'n'
    union all
    select 'index ' || index.relname,
        replace(pg_get_indexdef(indexrelid), own.path, '') || case when indisvalid then '' else ' (invalid)' end
    from own join pg_index on indrelid = own.oid join pg_class as index on index.oid = indexrelid
    union all
    select 'trigger ' || relname || '.' || tgname, replace(pg_get_triggerdef(pg_trigger.oid), own.path, '')
    from own join pg_trigger on tgrelid = own.oid and not tgisinternal
    union all
    select 'view ' || relname, md5(pg_get_viewdef(oid)) from own where relkind = 'v'
    union all
    select 'function ' || proname || '(' || pg_get_function_identity_arguments(pg_proc.oid) || ')',
        case when proname = 'stemmed' then ''
            else provolatile::text || proparallel::text || md5(coalesce(pg_get_function_sqlbody(pg_proc.oid), prosrc))
        end
    from pg_proc
    where pronamespace = quote_ident(current_schema())::regnamespace
        and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = pg_proc.oid
            and deptype = 'e')
    union all
    select 'text search configuration ' || cfgname, '' from pg_ts_config
    where cfgnamespace = quote_ident(current_schema())::regnamespace
"""

MAJOR = "select current_setting('server_version_num')::int / 10000"

STABLE = ("table ", "column ", "text search configuration ")
"""Objects whose definition text is the same in every major version of PostgreSQL; others are compared within one."""


def live_catalogue(db: Connection) -> dict[str, Any]:
    """Return the catalogue of a database: PostgreSQL's major version and the definitions of objects by name."""
    return {"postgres": number(db, MAJOR), "objects": dict(db.execute(OBJECTS).fetchall())}


@cache
def expected_catalogue() -> dict[str, Any]:
    """Return the catalogue that this version of Ebb expects."""
    file = resources.files("workers.storage") / "catalogue.json"
    return dict(json.loads(file.read_text("utf-8")))


def catalogue_differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return sentences about missing and changed objects.

    Additional objects are allowed, except for triggers and constraints, which could reject or change Ebb's writes.
    """
    same_major = found["postgres"] == wanted["postgres"]
    has, wants = found["objects"], wanted["objects"]
    missing = [f"{name} is missing" for name in sorted(wants.keys() - has)]
    changed = [
        f"{name} is {has[name] or 'plain'!r}, expected is {wants[name] or 'plain'!r}"
        for name in sorted(wants.keys() & has)
        if has[name] != wants[name] and (same_major or name.startswith(STABLE))
    ]
    return missing + changed + [f"{name} is not known to Ebb" for name in sorted(_foreign(has, wants))]


def _foreign(has: Mapping[str, str], wants: Mapping[str, str]) -> list[str]:
    """Return constraints and triggers on Ebb's tables that Ebb did not create."""
    kinds = ("constraint ", "trigger ")
    unknown = [name for name in has if name.startswith(kinds) and name not in wants]
    return [name for name in unknown if f"table {name.split(' ', 1)[1].split('.', 1)[0]}" in wants]
