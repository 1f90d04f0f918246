-- What the next pass over a namespace will make of what is over: it will hold what ended within a gap between passes, and
-- what ended not before this fact, unless its owner asked for the end by `passed_at` and a day. Null where there is none.
create type outlook as (
    gap_from timestamptz, gap_until timestamptz, passed_at timestamptz, ends_at timestamptz, fact uuid
);

-- The outlook of a namespace at an instant. A gap is there if one waits for its owner, or if the next pass will find one,
-- as in `core.gaps`. What ends is due within a moment, so each segment is asked for what is due. Statements ask for this
-- in an uncorrelated subquery, which runs once, and only if they meet a fact that is over.
create function outlook_of(tenant integer, instant timestamptz) returns outlook
    language sql stable parallel safe
return (
    select row(began, ended, passed_at, exceeding.ends_at, exceeding.fact)::outlook
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
        select ends_at, fact
        from generate_series(0, (select max(segment) from activity)) as series (segment)
        join activity on activity.segment = series.segment and due_at <= instant + interval '1 second'
        where namespace + 0 = tenant and ends_at <= instant and not held
            and not asked_for(decay_class_source, expires_at, passed_at, instant)
            and not coalesce(ends_at > began and ends_at <= ended, false)
        order by ends_at, fact
        offset coalesce(forget_room(tenant, instant), 9223372036854775807)
        limit 1
    ) as exceeding on true
);

-- Whether a pass at an instant would hold a fact that is over, or go on holding it.
create function stays(one activity, next outlook, instant timestamptz) returns boolean
    language sql immutable parallel safe
return (one).ends_at <= instant and not (one).retired and (
    coalesce((one).ends_at > (next).gap_from and (one).ends_at <= (next).gap_until, false)
    or ((one).held or coalesce(((one).ends_at, (one).fact) >= ((next).ends_at, (next).fact), false))
        and not asked_for((one).decay_class_source, (one).expires_at, (next).passed_at, instant)
);

-- Whether a fact that is over stays visible at an instant, whether or not a pass has come. Written so that the outlook is
-- only asked for where a pass would take the fact.
create function is_held(one activity, next outlook, instant timestamptz) returns boolean
    language sql immutable parallel safe
return (one).held and (one).due_at > instant or stays(one, next, instant);

-- Whether readers see a fact no more, because it has ended by itself and nothing keeps it visible.
create function has_ended(one activity, next outlook, instant timestamptz) returns boolean
    language sql immutable parallel safe
return is_over((one).ends_at, is_held(one, next, instant), instant);

-- What readers see as long as it has not ended, which its `activity` says.
create or replace view remembered as
select facts.namespace, id, kind, text, category, entity, key, value, importance, created_at, decay_class,
    case when held then 'infinity' else ends_at end as ends_at, pinned_until, decay_class_source, tags, activity
from facts
join activity on activity.namespace = facts.namespace and activity.fact = facts.id
where coalesce(forgotten_at, superseded_at) is null;

drop function forget_horizon(integer, timestamptz);
