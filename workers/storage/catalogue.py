"""The catalogue: what a schema really has, compared with what this version of Ebb expects.

The expectation is `catalogue.json` beside this module: the catalogue of a database that `schema.sql` made, written by
`make catalogue`. Tables and indexes that Ebb does not know are left out of the comparison.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from workers.storage.connection import Connection

# What a table, function or other object is, in words that do not change while the object does not: no oids, no
# statistics. What belongs to an extension is its own affair, and the two objects that the configured language redefines
# are only expected to exist. Constraints for `not null` are part of their columns, and have rows of their own from
# PostgreSQL 18 on.
OBJECTS = """
    with own as (
        select oid, relname, relkind, reloptions from pg_class
        where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v')
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
    select 'index ' || index.relname, pg_get_indexdef(indexrelid) || case when indisvalid then '' else ' (invalid)' end
    from own join pg_index on indrelid = own.oid join pg_class as index on index.oid = indexrelid
    union all
    select 'trigger ' || relname || '.' || tgname, pg_get_triggerdef(pg_trigger.oid)
    from own join pg_trigger on tgrelid = own.oid and not tgisinternal
    union all
    select 'view ' || relname, md5(pg_get_viewdef(oid)) from own where relkind = 'v'
    union all
    select 'function ' || proname || '(' || pg_get_function_identity_arguments(pg_proc.oid) || ')',
        case when proname = 'stemmed' then ''
            else provolatile::text || proparallel::text || md5(coalesce(pg_get_function_sqlbody(pg_proc.oid), prosrc))
        end
    from pg_proc
    where pronamespace = current_schema()::regnamespace
        and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = pg_proc.oid
            and deptype = 'e')
    union all
    select 'text search configuration ' || cfgname, '' from pg_ts_config
    where cfgnamespace = current_schema()::regnamespace
"""
MAJOR = "select current_setting('server_version_num')::int / 10000"

STABLE = ("table ", "column ", "text search configuration ")
"""What every major version of PostgreSQL describes in the same words; the rest is compared within one only."""


def live(db: Connection) -> dict[str, Any]:
    """Return the catalogue of a database: PostgreSQL's major version, and the definition of each object by its name."""
    row = db.execute(MAJOR).fetchone()
    return {"postgres": row[0] if row else 0, "objects": dict(db.execute(OBJECTS).fetchall())}


@cache
def expected() -> dict[str, Any]:
    """Return the catalogue that this version of Ebb works with."""
    file = resources.files("workers.storage") / "catalogue.json"
    return dict(json.loads(file.read_text("utf-8")))


def written(catalogue: Mapping[str, Any]) -> str:
    """Return a catalogue as `catalogue.json` has it, one object a line."""
    return json.dumps(catalogue, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return what is missing from the catalogue that was found or is otherwise than wanted, a sentence each.

    What a database has beyond that is no difference, except for triggers and constraints, which can refuse or change
    what Ebb writes.
    """
    same_major = found["postgres"] == wanted["postgres"]
    has, wants = found["objects"], wanted["objects"]
    missing = [f"{name} is missing" for name in sorted(wants) if name not in has]
    changed = [
        f"{name} is {has[name] or 'plain'!r}, expected is {wants[name] or 'plain'!r}"
        for name in sorted(wants)
        if name in has and has[name] != wants[name] and (same_major or name.startswith(STABLE))
    ]
    return missing + changed + [f"{name} is not known to Ebb" for name in sorted(_foreign(has, wants))]


def _foreign(has: Mapping[str, str], wants: Mapping[str, str]) -> list[str]:
    """Return constraints and triggers on tables of Ebb that Ebb did not make."""
    kinds = ("constraint ", "trigger ")
    unknown = [name for name in has if name.startswith(kinds) and name not in wants]
    return [name for name in unknown if f"table {name.split(' ', 1)[1].split('.', 1)[0]}" in wants]
