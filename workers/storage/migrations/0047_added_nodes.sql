-- A new node of Citus is given each function after what it depends on. A function that takes rows of `activity` and calls another
-- one that does made that a circle: the table was made twice, the second time without the function that was called.
-- Citus replaces no function of the circle, so there all three are dropped first. Elsewhere the function that was called stays:
-- workers of the version before look for it when they start.
do $$
begin
    if exists (select from pg_extension where extname = 'citus') then
        drop function if exists has_ended(activity, outlook, timestamptz);
        drop function if exists is_held(activity, outlook, timestamptz);
        drop function if exists stays(activity, outlook, timestamptz);
    end if;
end
$$;
create or replace function stays(
    ends_at timestamptz, retired boolean, held boolean, rank double precision, fact uuid, source text,
    expires_at timestamptz, next outlook, instant timestamptz
) returns boolean
    language sql immutable parallel safe
return ends_at <= instant and not retired and (
    coalesce(ends_at > (next).gap_from and ends_at <= (next).gap_until, false)
    or (held or coalesce((rank, fact) >= ((next).value_rank, (next).fact), false))
        and not asked_for(source, expires_at, (next).passed_at, instant)
);

create or replace function is_held(one activity, next outlook, instant timestamptz) returns boolean
    language sql immutable parallel safe
return (one).held and (one).due_at > instant or stays(
    (one).ends_at, (one).retired, (one).held, value_rank(
        (one).worth, (one).base, (one).coactivations, (one).last_seen_at, (one).pinned_until, (one).recall_count,
        (one).confirmations
    ), (one).fact, (one).decay_class_source, (one).expires_at, next, instant
);

create or replace function has_ended(one activity, next outlook, instant timestamptz) returns boolean
    language sql immutable parallel safe
return is_over((one).ends_at, (one).held and (one).due_at > instant or stays(
    (one).ends_at, (one).retired, (one).held, value_rank(
        (one).worth, (one).base, (one).coactivations, (one).last_seen_at, (one).pinned_until, (one).recall_count,
        (one).confirmations
    ), (one).fact, (one).decay_class_source, (one).expires_at, next, instant
), instant);
