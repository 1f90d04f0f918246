-- outside a transaction
-- Forms of the same Greek, Hebrew or Arabic name are equal.
drop index concurrently if exists facts_topics;
create index concurrently facts_topics
    on facts (namespace, left(folded(entity), 200), left(folded(key), 200), created_at)
    where entity is not null and forgotten_at is null and superseded_at is null;
drop index concurrently if exists facts_entities;
create index concurrently facts_entities on facts (namespace, left(folded(entity), 200), created_at)
    where entity is not null and forgotten_at is null and superseded_at is null;
drop index concurrently if exists relations_source;
create index concurrently relations_source on relations (namespace, folded(source));
drop index concurrently if exists relations_target;
create index concurrently relations_target on relations (namespace, folded(target));
