-- outside a transaction
-- A build that was killed leaves an invalid index behind.
drop index concurrently if exists facts_tombstones;
create index concurrently facts_tombstones on facts (namespace, forgotten_at desc, id desc)
    where forgotten_at is not null;
