-- outside a transaction
-- Lists show the newest facts first; ids are no order of time.
drop index concurrently if exists facts_newest;
create index concurrently facts_newest on facts (namespace, created_at)
    where num_nonnulls(forgotten_at, superseded_at) = 0;
