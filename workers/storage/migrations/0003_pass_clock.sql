-- When the last pass over all namespaces began, and what ended in a gap between two passes.
create table pass_clock (
    only_row boolean primary key default true check (only_row),
    at timestamptz not null
);
insert into pass_clock (at) select max(started_at) from decay_runs having max(started_at) is not null;

alter table namespaces add column gap_from timestamptz, add column gap_until timestamptz;
