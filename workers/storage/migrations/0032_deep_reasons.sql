-- Facts in deep memory are counted by reason, apart from tombstones; the numbers are those of `storage.packing`.
create function deep_reason(body bytea) returns text
    language sql immutable parallel safe
return 'deep ' || (array['expired', 'faded', 'culled', 'aged', 'merged', 'pruned', 'crowded'])[1 + get_byte(body, 8)];

create or replace function tally_deep_added() returns trigger
    language plpgsql set search_path from current as $$
declare
    changes tally_changes[] := array(
        select row(namespace, null, null, null, null, null, null, null, deep_reason(body), count(*))::tally_changes
        from new_rows group by namespace, deep_reason(body)
    );
begin
    insert into tally_changes select * from unnest(changes);
    return null;
end
$$;

create or replace function tally_deep_deleted() returns trigger
    language plpgsql set search_path from current as $$
declare
    changes tally_changes[] := array(
        select row(namespace, null, null, null, null, null, null, null, deep_reason(body), -count(*))::tally_changes
        from old_rows group by namespace, deep_reason(body)
    );
begin
    insert into tally_changes select * from unnest(changes);
    return null;
end
$$;

-- No fact sinks or comes up meanwhile, and no change is added to the totals.
select pg_advisory_xact_lock(3771 + 2);
lock table deep in share row exclusive mode;
delete from tally_changes where forgotten_reason = 'deep';
delete from tallies where forgotten_reason = 'deep';
insert into tally_changes (namespace, forgotten_reason, facts)
    select namespace, deep_reason(body), count(*) from deep group by namespace, deep_reason(body);
