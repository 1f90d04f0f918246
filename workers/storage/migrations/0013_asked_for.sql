-- Whether a fact ends as its owner asked: a lifetime that the owner chose has run out, not later than a day after the
-- last pass. Before the first pass any time will do. A lifetime includes the instant at which it expires.
create or replace function asked_for(
    decay_class_source text, expires_at timestamptz, passed_at timestamptz, instant timestamptz
) returns boolean
    language sql immutable parallel safe
return coalesce(decay_class_source = 'explicit', false)
    and expires_at < instant and expires_at <= coalesce(passed_at + interval '1 day', 'infinity');
