-- Whether a fact has ended by itself by an instant, whether or not a pass has come; one that a pass held back has not.
-- Everything that asks whether a fact is remembered asks this.
create or replace function is_over(ends_at timestamptz, held boolean, instant timestamptz) returns boolean
    language sql immutable parallel safe
return ends_at <= instant and not held;

