-- Whether a fact has ended by itself by an instant, whether or not a pass has come; one that a pass held back has not.
-- Everything that asks whether a fact is remembered asks this.
create or replace function is_over(ends_at timestamptz, held boolean, instant timestamptz) returns boolean
    language sql immutable parallel safe
return ends_at <= instant and not held;

-- By which rule a read at an instant does not show a fact; null for one that it shows. `as_of` asks what was true then,
-- `known_as_of` what was stored by then; both null ask for the present. What somebody asked to forget is in no read. What
-- ended by itself, was superseded or was forgotten is in reads as of before that; a read as of the present or later sees
-- what the present does, whatever clock a row was written by.
create or replace function hidden_because(
    forgotten_at timestamptz, forgotten_reason text, superseded_at timestamptz, created_at timestamptz,
    valid_from timestamptz, valid_until timestamptz, expires_at timestamptz, ends_at timestamptz, held boolean,
    instant timestamptz, as_of timestamptz, known_as_of timestamptz
) returns text
    language sql immutable parallel safe
return case
    when forgotten_at is not null
        and (forgotten_reason in ('asked', 'retracted') or coalesce(known_as_of, as_of, instant) >= instant
            or forgotten_at <= coalesce(known_as_of, as_of)) then 'forgotten: ' || forgotten_reason
    when superseded_at is not null and coalesce(known_as_of, as_of, instant) >= instant then 'superseded'
    when valid_from > coalesce(as_of, known_as_of) and coalesce(as_of, known_as_of) < instant then 'not yet valid'
    -- an end that was only noted after `known_as_of` was not known then
    when valid_until <= coalesce(as_of, known_as_of, instant)
        and (superseded_at is null or known_as_of is null or superseded_at <= known_as_of) then 'no longer valid'
    when is_over(ends_at, held, coalesce(as_of, known_as_of, instant)) then
        case when expires_at <= coalesce(as_of, known_as_of, instant) then 'expired' else 'faded' end
    when created_at > known_as_of and known_as_of < instant then 'not yet known'
    when superseded_at <= known_as_of then 'superseded'
end;
