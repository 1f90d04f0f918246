-- Facts end in order of their value where not all may end at once: what their content, importance and links add to it
-- stands beside their activity. It is written when their salience is next estimated, and until then an ordinary one.
alter table activity add column worth real not null default 0;
alter table decay_allowances add column last_rank double precision;

-- What the content and the importance of a fact, and how many links it has, add to its value: log odds, as in `core.value`.
create function fact_worth(content real, importance double precision, links bigint) returns real
    language sql immutable parallel safe
return ln(
        least(greatest(coalesce(content, 0.5)::double precision, 0.01), 0.99)
        / (1 - least(greatest(coalesce(content, 0.5)::double precision, 0.01), 0.99))
    ) + 2 * (importance - 0.5) + 0.2 * ln(1 + links::double precision);

-- The order of facts by value, the same at every instant: log odds at the epoch, as in `core.value`.
-- A strength counts as 1e-9 at least: half of the smallest number that there is would be an error.
create function value_rank(
    worth real, base double precision, coactivations integer, last_seen_at timestamptz, pinned_until timestamptz,
    recall_count integer, confirmations integer
) returns double precision
    language sql immutable parallel safe
return case when pinned_until = 'infinity' then 'infinity'
    else worth + 0.5 * least(greatest(base * (1 + ln(1 + coactivations::double precision)), 1e-9), 1)
        + 0.1 * ln(1 + recall_count::double precision) + 0.5 * ln(1 + confirmations::double precision)
        + 0.0005 * date_part('epoch', greatest(last_seen_at, pinned_until) - timestamptz 'epoch') / 86400
end;

create or replace view anchors as
select namespace, fact, segment, base, coactivations, date_part('epoch', last_seen_at) as last_seen_at,
    confidence, date_part('epoch', last_confirmed_at) as confirmed_at,
    date_part('epoch', expires_at) as expires_at, coalesce(decay_class, '') as decay_class, tier, fidelity,
    coalesce(date_part('epoch', last_accessed_at), '-infinity') as last_accessed_at, held, due_at, ends_at,
    coalesce(date_part('epoch', pinned_until), '-infinity') as pinned_until,
    halvings, decay_class_source, branch, coalesce(date_part('epoch', encoded_at), '-infinity') as encoded_at,
    coalesce(occurred, 0) as occurred, coalesce(date_part('epoch', outrun_at), 'infinity') as outrun_at,
    outrun_at as outrun_since, stale, retired,
    value_rank(worth, base, coactivations, activity.last_seen_at, activity.pinned_until, recall_count, confirmations)
        as value_rank
from activity;

drop function has_ended(activity, outlook, timestamptz);
drop function is_held(activity, outlook, timestamptz);
drop function stays(activity, outlook, timestamptz);
drop function outlook_of(integer, timestamptz);
drop type outlook;

-- What the next pass over a namespace will make of what is over: it will hold what ended within a gap between passes, and
-- what is worth no less than this fact, unless its owner asked for the end by `passed_at` and a day. Null where there is none.
create type outlook as (
    gap_from timestamptz, gap_until timestamptz, passed_at timestamptz, value_rank double precision, fact uuid
);

-- The outlook of a namespace at an instant. A gap is there if one waits for its owner, or if the next pass will find one,
-- as in `core.gaps`. What ends is due within a moment, so each segment is asked for what is due. Statements ask for this
-- in an uncorrelated subquery, which runs once, and only if they meet a fact that is over.
create function outlook_of(tenant integer, instant timestamptz) returns outlook
    language sql stable parallel safe
return (
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
);

-- Whether a pass at an instant would hold a fact that is over, or go on holding it.
create function stays(one activity, next outlook, instant timestamptz) returns boolean
    language sql immutable parallel safe
return (one).ends_at <= instant and not (one).retired and (
    coalesce((one).ends_at > (next).gap_from and (one).ends_at <= (next).gap_until, false)
    or ((one).held or coalesce((value_rank(
            (one).worth, (one).base, (one).coactivations, (one).last_seen_at, (one).pinned_until, (one).recall_count,
            (one).confirmations
        ), (one).fact) >= ((next).value_rank, (next).fact), false))
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
