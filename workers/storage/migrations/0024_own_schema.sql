-- What functions run finds what it names in their own schema, whatever search path a session has. Triggers read what changed
-- into a variable first, because the table of that is not known where Citus plans what they write.
create or replace function words(body text) returns tsvector
    language plpgsql immutable parallel safe set search_path from current as $$
declare
    plain constant text := readable(body);
    stems constant tsvector := stemmed(plain);
begin
    return stems || as_written(plain, stems);
end $$;

create or replace function search_lexemes(
    namespace integer, body text, category text, entity text, key text, value text, tags text[]
) returns tsvector
    language plpgsql immutable parallel safe set search_path from current as $$
declare
    named tsvector := '';
    labels constant text[] := array['namespace ' || namespace] || array(select 'tag ' || tag from unnest(tags) as tag);
begin
    if coalesce(category, entity, key, value) is not null then
        named := words(concat_ws(' ', category, entity, key, value));
    end if;
    return named || named || words(body) || array_to_tsvector(labels);
end $$;

create or replace function last_pass(tenant integer) returns timestamptz
    language sql stable parallel safe set search_path from current as $$
    select planned_for from decay_runs
    where finished_at is not null and not dry_run
        and work in ('decay', 'prune', 'hard prune', 'startup prune', 'janitor')
        and (namespace is null or namespace = tenant)
    order by started_at desc
    limit 1
$$;

create or replace function forget_room(tenant integer, instant timestamptz) returns bigint
    language sql stable parallel safe set search_path from current as $$
    select case when a_day < 1 and not exists (select from namespaces where id = tenant and branch_of is not null) then least(
        share_left(a_day, live + all_of_day, of_day),
        case when a_week < 1 then share_left(a_week, live + all_of_week, of_week) end
    ) end
    from forget_limits
    cross join (
        select coalesce(sum(facts) filter (where at > instant - interval '1 day'), 0) as of_day,
            coalesce(sum(facts), 0) as of_week,
            coalesce(sum(facts + asked) filter (where at > instant - interval '1 day'), 0) as all_of_day,
            coalesce(sum(facts + asked), 0) as all_of_week
        from endings
        where namespace = tenant and at > instant - interval '7 days'
    ) as ended
    cross join (
        select coalesce(sum(facts), 0) as live
        from (
            select facts from tallies where namespace = tenant and forgotten_reason is null
            union all
            select facts from tally_changes where namespace = tenant and forgotten_reason is null
        ) as counted
    ) as counted
$$;

create or replace function outlook_of(tenant integer, instant timestamptz) returns outlook
    language sql stable parallel safe set search_path from current as $$
    select row(began, ended, passed_at, exceeding.value_rank, exceeding.fact)::outlook
    from (
        select coalesce(gap_from, at) as began,
            case when at is null then gap_until else statement_timestamp() end as ended, last_pass(tenant) as passed_at
        from namespaces
        left join pass_clock on branch_of is null and statement_timestamp() - at
            > case when pg_postmaster_start_time() <= at then interval '1 day' else interval '7 days' end
        where id = tenant
        offset 0
    ) as known
    left join lateral (
        select value_rank(
            worth, base, coactivations, last_seen_at, pinned_until, recall_count, confirmations
        ), fact
        from generate_series(0, (select max(segment) from activity)) as series (segment)
        join activity on activity.segment = series.segment and due_at <= instant + interval '1 second'
        where namespace + 0 = tenant and ends_at <= instant and not held
            and not asked_for(decay_class_source, expires_at, passed_at, instant)
            and not coalesce(ends_at > began and ends_at <= ended, false)
        order by 1, fact
        offset coalesce(forget_room(tenant, instant), 9223372036854775807)
        limit 1
    ) as exceeding on true
$$;

create or replace function tally_activity_added() returns trigger
    language plpgsql set search_path from current as $$
declare
    changes tally_changes[] := array(
        select row(namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, null, count(*))::tally_changes
        from new_rows
        where not retired
        group by namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale
    );
begin
    insert into tally_changes select * from unnest(changes);
    return null;
end
$$;

create or replace function tally_activity_changed() returns trigger
    language plpgsql set search_path from current as $$
declare
    changes tally_changes[] := array(
        select row(
            namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, null, sum(change)
        )::tally_changes
        from (
            select namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, 1 as change
            from new_rows where not retired
            union all
            select namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, -1
            from old_rows where not retired
        ) as changed
        group by namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale
        having sum(change) <> 0
    );
begin
    if cardinality(changes) > 0 then
        insert into tally_changes select * from unnest(changes);
    end if;
    return null;
end
$$;

create or replace function tally_activity_deleted() returns trigger
    language plpgsql set search_path from current as $$
begin
    insert into tally_changes (namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, facts)
    values (old.namespace, old.decay_class, old.decay_class_source, old.tier, old.fidelity, old.branch,
        old.held, old.stale, -1);
    return null;
end
$$;

create or replace function tally_tombstone_added() returns trigger
    language plpgsql set search_path from current as $$
begin
    insert into tally_changes (namespace, forgotten_reason, facts) values (new.namespace, new.forgotten_reason, 1);
    return null;
end
$$;

create or replace function tally_tombstones_changed() returns trigger
    language plpgsql set search_path from current as $$
declare
    changes tally_changes[] := array(
        select row(namespace, null, null, null, null, null, null, null, forgotten_reason, sum(change))::tally_changes
        from (
            select namespace, forgotten_reason, 1 as change from new_rows
            where forgotten_reason is not null and superseded_at is null
            union all
            select namespace, forgotten_reason, -1 from old_rows
            where forgotten_reason is not null and superseded_at is null
        ) as changed
        group by namespace, forgotten_reason
        having sum(change) <> 0
    );
begin
    if cardinality(changes) > 0 then
        insert into tally_changes select * from unnest(changes);
    end if;
    return null;
end
$$;

create or replace function tally_tombstones_deleted() returns trigger
    language plpgsql set search_path from current as $$
declare
    changes tally_changes[] := array(
        select row(namespace, null, null, null, null, null, null, null, forgotten_reason, -count(*))::tally_changes
        from old_rows
        where forgotten_reason is not null and superseded_at is null
        group by namespace, forgotten_reason
    );
begin
    insert into tally_changes select * from unnest(changes);
    return null;
end
$$;

create or replace function note_erasures() returns trigger
    language plpgsql set search_path from current as $$
declare
    namespaces integer[] := array(select distinct namespace from old_rows);
begin
    insert into erasures (namespace) select unnest(namespaces);
    return null;
end
$$;

create or replace function tally_deep_added() returns trigger
    language plpgsql set search_path from current as $$
declare
    changes tally_changes[] := array(
        select row(namespace, null, null, null, null, null, null, null, 'deep', count(*))::tally_changes
        from new_rows group by namespace
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
        select row(namespace, null, null, null, null, null, null, null, 'deep', -count(*))::tally_changes
        from old_rows group by namespace
    );
begin
    insert into tally_changes select * from unnest(changes);
    return null;
end
$$;

create or replace view remembered as
select facts.namespace, id, kind, text, category, entity, key, value, importance, created_at, decay_class,
    case when held then 'infinity' else ends_at end as ends_at, pinned_until, decay_class_source, tags,
    row(activity.*)::activity as activity
from facts
join activity on activity.namespace = facts.namespace and activity.fact = facts.id
where coalesce(forgotten_at, superseded_at) is null;
