-- The migrations that this database has.
create table schema_migrations (
    number integer primary key,
    name text not null,
    applied_at timestamptz not null default now()
);
