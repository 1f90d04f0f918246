-- What ended by itself, as little room as it takes: `body` is what `storage.packing` makes of a fact and all that belongs
-- to it, `words` marks the words in it. No index holds more than its id: who asks for it reads all of its namespace.
create table if not exists deep (
    forgotten_at timestamptz not null,
    namespace integer not null references namespaces (id),
    -- null where the embedder has changed since
    signature bit(1024),
    id uuid not null,
    words bit varying not null,
    body bytea not null
);
alter table deep alter column body set storage external;

-- deep memory: a fact by its id; a hash of that is enough, and takes half of the room
create index if not exists deep_facts on deep (namespace, uuid_hash(id));

-- How many of a question's words, by weight, a fact seems to hold: each is marked in one bit of its `words`. Eight words,
-- written out, so that PostgreSQL inlines it; with fewer the others weigh nothing.
create or replace function marked(words bit varying, places integer[], weights double precision[])
    returns double precision
    language sql immutable parallel safe
return weights[1] * get_bit(words, places[1] % length(words)) + weights[2] * get_bit(words, places[2] % length(words))
    + weights[3] * get_bit(words, places[3] % length(words)) + weights[4] * get_bit(words, places[4] % length(words))
    + weights[5] * get_bit(words, places[5] % length(words)) + weights[6] * get_bit(words, places[6] % length(words))
    + weights[7] * get_bit(words, places[7] % length(words)) + weights[8] * get_bit(words, places[8] % length(words));

create or replace function tally_deep_added() returns trigger
    language plpgsql as $$
begin
    insert into tally_changes (namespace, forgotten_reason, facts)
    select namespace, 'deep', count(*) from new_rows group by 1;
    return null;
end
$$;

create or replace function tally_deep_deleted() returns trigger
    language plpgsql as $$
begin
    insert into tally_changes (namespace, forgotten_reason, facts)
    select namespace, 'deep', -count(*) from old_rows group by 1;
    return null;
end
$$;

drop trigger if exists tally_added on deep;
create trigger tally_added after insert on deep
    referencing new table as new_rows for each statement execute function tally_deep_added();
drop trigger if exists tally_deleted on deep;
create trigger tally_deleted after delete on deep
    referencing old table as old_rows for each statement execute function tally_deep_deleted();
drop trigger if exists erased on deep;
create trigger erased after delete on deep
    referencing old table as old_rows for each statement execute function note_erasures();
