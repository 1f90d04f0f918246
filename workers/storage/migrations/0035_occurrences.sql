-- In which other sessions, or at which other turn, a fact was said again.
create table if not exists occurrences (
    namespace integer not null,
    fact uuid not null,
    -- of the turn, as the fact would have it
    id uuid not null,
    session jsonb not null check (jsonb_typeof(session) in ('string', 'number')),
    turn integer,
    role text check (role in ('user', 'assistant', 'system', 'tool')),
    said_at timestamptz not null,
    primary key (namespace, fact, session),
    foreign key (namespace, fact) references facts (namespace, id) on delete cascade
);

create index if not exists occurrences_session on occurrences (namespace, session, turn);
