-- outside a transaction
create index concurrently if not exists facts_tombstones on facts (namespace, forgotten_at desc, id desc)
    where forgotten_at is not null;
