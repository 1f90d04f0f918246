-- The forget limit counts what ends by itself over a day and a week, in whatever passes and clean-ups it ends.
create table endings (
    namespace integer not null,
    at timestamptz not null,
    facts bigint not null,
    asked bigint not null default 0,
    primary key (namespace, at)
);

create table forget_limits (
    only_row boolean primary key default true check (only_row),
    a_day double precision not null default 0.2,
    a_week double precision not null default 0.5
);
insert into forget_limits default values;

alter table decay_runs add column passed_at timestamptz;
alter table decay_allowances add column last_ends_at double precision;
alter table decay_allowances add column last_fact uuid;
create index decay_runs_passes on decay_runs (started_at desc)
    where finished_at is not null and not dry_run and work in ('decay', 'prune', 'hard prune', 'startup prune', 'janitor');

create function last_pass(tenant integer) returns timestamptz
    language sql stable parallel safe
return (
    select planned_for from decay_runs
    where finished_at is not null and not dry_run
        and work in ('decay', 'prune', 'hard prune', 'startup prune', 'janitor')
        and (namespace is null or namespace = tenant)
    order by started_at desc
    limit 1
);

create function asked_for(
    decay_class_source text, expires_at timestamptz, passed_at timestamptz, instant timestamptz
) returns boolean
    language sql immutable parallel safe
return coalesce(decay_class_source = 'explicit', false)
    and expires_at <= least(instant, passed_at + interval '1 day');

create function share_left(share double precision, lived numeric, ended numeric) returns bigint
    language sql immutable parallel safe
return case
    when share <= 0 then 0
    else greatest(greatest(floor(share * lived), 5) - ended, 0)
end;

create function forget_room(tenant integer, instant timestamptz) returns bigint
    language sql stable parallel safe
return (
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
);

create function forget_horizon(tenant integer, instant timestamptz) returns timestamptz
    language sql stable parallel safe
return coalesce(
    (
        select ends_at from activity
        where namespace = tenant and due_at <= instant + interval '1 second' and ends_at <= instant and not held
            and not asked_for(decay_class_source, expires_at, last_pass(tenant), instant)
        order by ends_at, fact
        offset coalesce(forget_room(tenant, instant), 9223372036854775807)
        limit 1
    ),
    'infinity'
);
