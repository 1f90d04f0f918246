-- By which texts a fact is known since near-duplicates were merged into it.
create table if not exists merged_texts (
    namespace integer not null,
    -- the digest of the text and case-sensitive words of a merged fact
    wording bytea not null,
    -- the live fact that it was merged into
    fact uuid not null,
    primary key (namespace, wording),
    foreign key (namespace, fact) references facts (namespace, id) on delete cascade
);

create index if not exists merged_texts_fact on merged_texts (namespace, fact);
