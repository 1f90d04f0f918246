-- Which touches and reinforcements were counted lately, so that a second delivery is not counted again.
create table if not exists uses (
    namespace integer not null,
    id uuid not null,
    counted_at timestamptz not null default now(),
    primary key (namespace, id)
);
