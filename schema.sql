-- Ebb's tables, indexes and functions: the snapshot from which an empty database is made. `ebb migrate` applies it, and
-- brings an older database to the same state by the numbered files in workers/storage/migrations. A change of the
-- schema is both: a new migration, and the same change here, with its number in the first statement below.

do $$
begin
    if to_regclass('schema_version') is not null then
        raise exception 'this database has a schema of Ebb already' using hint = 'bring it up to date with: ebb migrate';
    end if;

    -- What code must know to work with this schema. A migration raises it only if code of before cannot go on working.
    create table schema_version (
        version integer not null,
        applied_at timestamptz not null default now()
    );
    insert into schema_version (version) values (1);

    -- The migrations that this database has; of a fresh one, the newest that the snapshot includes.
    create table schema_migrations (
        number integer primary key,
        name text not null,
        applied_at timestamptz not null default now()
    );
    insert into schema_migrations (number, name) values (24, 'snapshot');
end $$;

create extension if not exists vector with schema public;

-- Tables ------------------------------------------------------------------------------------------------------------

-- What all vectors of this database have in common; a start with anything else is refused.
create table embedders (
    only_row boolean primary key default true check (only_row),
    name text not null,
    dims integer not null,
    signature_seed bigint not null
);

create table namespaces (
    id integer generated always as identity primary key,
    name text not null unique,
    created_at timestamptz not null default now(),
    -- what the last refresh of `lexemes` counted: live facts and their words
    counted_facts bigint not null default 0,
    counted_words bigint not null default 0,
    counted_at timestamptz,
    -- since when fading waits for `--force`, because a pass met the forget limit
    held_since timestamptz,
    -- goes into the digests of `forgotten_hashes`, so that those of two namespaces have nothing in common
    salt uuid not null default gen_random_uuid(),
    -- how many turns of sessions were stored: each new pair of session and turn is one more, and none is taken back
    turns bigint not null default 0,
    -- what differs from the settings of the whole, in the documents' names; when that was last chosen, and when it
    -- was written, until every fact has been looked at by it
    settings jsonb not null default '{}',
    chosen_at timestamptz,
    settings_changed_at timestamptz,
    -- how many facts were due when that was last noted in `tally_history`
    due_noted bigint not null default 0,
    -- between which instants no pass came: what ended there is kept until its owner confirms that it may go
    gap_from timestamptz,
    gap_until timestamptz,
    -- of a branch: whose copy it is, by how much older its instants are, and when it was complete
    branch_of text,
    branch_age interval,
    branched_at timestamptz,
    -- by how many counted facts the salience of content was last estimated for all of them
    estimated_facts bigint not null default 0
);

-- Keys to the HTTP API, each to one namespace. Only the SHA-256 of a key is kept, which is as good as random itself.
create table api_keys (
    namespace integer not null references namespaces (id),
    id uuid not null,
    digest bytea not null unique,
    label text,
    scopes text[] not null check (scopes <@ '{read,write,admin,system}' and scopes <> '{}'),
    created_at timestamptz not null,
    revoked_at timestamptz,
    expires_at timestamptz,
    primary key (namespace, id)
);

-- In which language all words of this database are stemmed, a text search configuration; a start with another is refused.
create table languages (
    only_row boolean primary key default true check (only_row),
    name text not null
);
insert into languages (name) values ('english');

-- Words as they are written, less the language's stop words, to which `language.SET` adapts both.
create text search dictionary ebb_written (template = simple, stopwords = english);
create text search configuration ebb_written (copy = simple);
alter text search configuration ebb_written
    alter mapping for asciiword, word, asciihword, hword, hword_asciipart, hword_part with ebb_written;
create function stemmed(body text) returns tsvector language sql immutable parallel safe
    return to_tsvector('english', body);

-- Scripts that are written without blanks between words, as ranges of characters: Thai to Khmer, kana, Han, Hangul.
create function unspaced() returns text
    language sql immutable parallel safe
return '\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff'
    '\U00020000-\U0003ffff';

-- Each character of such a script becomes a word, and each pair of neighbours: first the pairs that begin at odd places
-- of a run, then, without its first character, those at even ones; what is left alone at the end of a run goes.
create function in_pairs(body text) returns text
    language sql immutable parallel safe
return (
    select regexp_replace(body, '([' || unspaced() || '])', ' \1 ', 'g')
        || regexp_replace(regexp_replace(runs || ' ' || regexp_replace(runs, '(\A| ).', ' ', 'g'),
            '([^ ])([^ ])', ' \1\2 ', 'g'), '(\A| )[^ ](?= |\Z)', ' ', 'g')
    from regexp_replace(body, '[^' || unspaced() || ']+', ' ', 'g') as runs
);

-- A text as the parser shall read it: without the marks by which it takes several words for one path, host, address or
-- number, and in composed form. Most texts are ASCII and need no more. No more is read than surely fits a tsvector.
create function readable(body text) returns text
    language sql immutable parallel safe
return case when octet_length(body) = length(body)
    then replace(replace(replace(left(body, 65536), '.', ' '), '/', ' '), '-', ' ')
    else in_pairs(translate(normalize(left(body, 65536), nfkc), './-', '   '))
end;

-- What stems do not say already: words as they are written, without accents. Stop words went before the accents.
create function as_written(readable text, stems tsvector) returns tsvector
    language sql immutable parallel safe
return ts_delete(
    case when octet_length(readable) = length(readable) then to_tsvector('ebb_written', readable)
        else normalize(
            regexp_replace(normalize(to_tsvector('ebb_written', readable)::text, nfkd), '[\u0300-\u036f]', '', 'g'), nfc
        )::tsvector
    end,
    tsvector_to_array(stems)
);

-- In PL/pgSQL, which runs this and the next in half the time of SQL. What PL/pgSQL runs knows its schema by the search
-- path of its creation, for a dump is restored without one, and a node of a cluster writes with another.
create function words(body text) returns tsvector
    language plpgsql immutable parallel safe set search_path from current as $$
declare
    plain constant text := readable(body);
    stems constant tsvector := stemmed(plain);
begin
    return stems || as_written(plain, stems);
end $$;

-- Words of one fact for GIN and BM25. Category, entity, key and value count twice, as in the simple BM25 extension to
-- weighted fields (Robertson, Zaragoza and Taylor, 2004): they are written twice, so that occurrences and length remain
-- those of one text, and the index grows by nothing. The namespace and the tags are lexemes too, with blanks inside,
-- which no parser yields, so the index itself keeps tenants apart. An immutable wrapper, since a generated column demands
-- one.
create function search_lexemes(
    namespace integer, body text, category text, entity text, key text, value text, tags text[]
) returns tsvector
    language plpgsql immutable parallel safe set search_path from current as $$
declare
    named tsvector := '';
    labels constant text[] := array['namespace ' || namespace] || array(select 'tag ' || tag from unnest(tags) as tag);
begin
    if coalesce(category, entity, key, value) is not null then
        named := words(concat_ws(' ', category, entity, key, value));
    end if;
    return named || named || words(body) || array_to_tsvector(labels);
end $$;

create table facts (
    namespace integer not null references namespaces (id),
    id uuid not null,
    kind text not null default 'semantic' check (kind in ('semantic', 'episodic', 'chunk', 'item')),
    text text not null,
    hash bytea not null,
    summary text,
    category text,
    entity text,
    key text,
    value text,
    source text,
    tags text[] not null default '{}',
    importance double precision not null default 0.5 check (importance between 0 and 1),
    -- the caller's own object, returned exactly as it was given; not read by Ebb
    metadata json,
    -- a text or a number, given back as it came
    session jsonb check (jsonb_typeof(session) in ('string', 'number')),
    turn integer,
    source_date timestamptz,
    created_at timestamptz not null,
    valid_from timestamptz not null,
    valid_until timestamptz,
    superseded_at timestamptz,
    superseded_by uuid,
    supersedes_id uuid,
    forgotten_at timestamptz,
    forgotten_reason text check (
        forgotten_reason in ('expired', 'faded', 'culled', 'aged', 'crowded', 'asked', 'retracted', 'merged', 'pruned')
    ),
    search tsvector not null
        generated always as (search_lexemes(namespace, text, category, entity, key, value, tags)) stored,
    -- the run that forgot it; null where no run did
    forgotten_by uuid,
    -- when the tombstone was written by the database's clock, whatever instant `forgotten_at` says
    tombstone_at timestamptz,
    -- who said it; null where that is not known
    role text check (role in ('user', 'assistant', 'system', 'tool')),
    -- how much of what is asked later its text is likely to answer, as given or estimated; null until it is estimated
    content_salience real check (content_salience between 0 and 1),
    -- whether it was given, and is never estimated again
    salience_given boolean not null default false,
    primary key (namespace, id)
);

-- Rewritten at every touch: narrow, and with room on each page so that rewriting stays on the page.
create table activity (
    namespace integer not null,
    fact uuid not null,
    segment smallint not null,
    -- what hygiene does to it: 0 semantic, culled by confidence; 1 a persistent episode, ages out; 2 a permanent one,
    -- becomes stale; 3 a chunk, nothing
    branch smallint not null default 0 check (branch between 0 and 3),
    base double precision not null,
    coactivations integer not null default 0,
    last_seen_at timestamptz not null,
    confidence double precision not null default 1,
    last_confirmed_at timestamptz not null,
    expires_at timestamptz not null default 'infinity',
    decay_class text,
    -- whether its own words decided, or the caller; null without class
    decay_class_source text check (decay_class_source in ('auto', 'explicit')),
    -- how often a pass has seen the confidence halved by soft decay; `confidence` itself stays as it was confirmed
    halvings smallint not null default 0,
    recall_count integer not null default 0,
    last_accessed_at timestamptz,
    -- how it faded before its last use: what the newest anchors were that uses have replaced, newest first, eleven bytes
    -- each, as `core.spells` packs them
    spells bytea check (length(spells) <= 176),
    -- how often it was reinforced, by a caller or by a near-duplicate that was merged into it
    confirmations integer not null default 0,
    -- whether its near-duplicates were looked for; what is stored later finds it by itself
    compared boolean not null default false,
    tier smallint not null,
    -- 0 no vector yet, 1 full, 2, 4, 8 … so many dimensions averaged into one, 32767 the signature alone
    fidelity smallint not null,
    -- when the fact is over by itself; readers hide it from then on, whether or not a pass has come
    ends_at timestamptz not null default 'infinity',
    -- over, but kept visible because a pass met the forget limit
    held boolean not null default false,
    -- a permanent episode that has been silent for long, as the last pass found it
    stale boolean not null default false,
    -- forgotten or superseded, which `facts` says in full
    retired boolean not null default false,
    due_at timestamptz not null,
    -- until then, or for good, it neither fades nor ends by itself; null if it was never pinned
    pinned_until timestamptz,
    -- the seconds to live that a pin without end keeps back, for it has no expiry meanwhile
    kept_lifetime double precision,
    -- of an episode: when it was encoded, the namespace's turns then, and when more turns had passed than it outlives
    encoded_at timestamptz,
    occurred bigint,
    outrun_at timestamptz,
    -- what its content, its importance and its links add to its value, in log odds
    worth real not null default 0,
    -- which questions strengthened it lately, as `core.repeats` packs them
    asked bytea,
    primary key (namespace, fact),
    foreign key (namespace, fact) references facts (namespace, id) on delete cascade,
    check ((decay_class is null) = (decay_class_source is null))
) with (fillfactor = 75);

-- Whether a fact has ended by itself by an instant; one that is held has not. `held` is what `is_held` says, which knows
-- what the next pass will hold as well; what asks whether a fact is remembered asks `has_ended`.
create or replace function is_over(ends_at timestamptz, held boolean, instant timestamptz) returns boolean
    language sql immutable parallel safe
return ends_at <= instant and not held;

-- What the content and the importance of a fact, and how many links it has, add to its value: log odds, as in `core.value`.
create function fact_worth(content real, importance double precision, links bigint) returns real
    language sql immutable parallel safe
return ln(
        least(greatest(coalesce(content, 0.5)::double precision, 0.01), 0.99)
        / (1 - least(greatest(coalesce(content, 0.5)::double precision, 0.01), 0.99))
    ) + 2 * (importance - 0.5) + 0.2 * ln(1 + links::double precision);

-- The order of facts by value, the same at every instant: log odds at the epoch, as in `core.value`.
-- A strength counts as 1e-9 at least: half of the smallest number that there is would be an error.
create function value_rank(
    worth real, base double precision, coactivations integer, last_seen_at timestamptz, pinned_until timestamptz,
    recall_count integer, confirmations integer
) returns double precision
    language sql immutable parallel safe
return case when pinned_until = 'infinity' then 'infinity'
    else worth + 0.5 * least(greatest(base * (1 + ln(1 + coactivations::double precision)), 1e-9), 1)
        + 0.1 * ln(1 + recall_count::double precision) + 0.5 * ln(1 + confirmations::double precision)
        + 0.0005 * date_part('epoch', greatest(last_seen_at, pinned_until) - timestamptz 'epoch') / 86400
end;

-- Activity as the forgetting curves take it: epoch seconds, no nulls; `due_at` and `ends_at` stay as they are indexed.
create view anchors as
select namespace, fact, segment, base, coactivations, date_part('epoch', last_seen_at) as last_seen_at,
    confidence, date_part('epoch', last_confirmed_at) as confirmed_at,
    date_part('epoch', expires_at) as expires_at, coalesce(decay_class, '') as decay_class, tier, fidelity,
    coalesce(date_part('epoch', last_accessed_at), '-infinity') as last_accessed_at, held, due_at, ends_at,
    coalesce(date_part('epoch', pinned_until), '-infinity') as pinned_until,
    halvings, decay_class_source, branch, coalesce(date_part('epoch', encoded_at), '-infinity') as encoded_at,
    coalesce(occurred, 0) as occurred, coalesce(date_part('epoch', outrun_at), 'infinity') as outrun_at,
    outrun_at as outrun_since, stale, retired,
    value_rank(worth, base, coactivations, activity.last_seen_at, activity.pinned_until, recall_count, confirmations)
        as value_rank
from activity;

-- By which rule a read at an instant does not show a fact; null for one that it shows. `as_of` asks what was true then,
-- `known_as_of` what was stored by then; both null ask for the present. What was forgotten on request is in no read. What
-- ended by itself, was superseded or was forgotten is in reads as of before that; a read as of the present or later sees
-- what the present does, whatever clock a row was written by.
create or replace function hidden_because(
    forgotten_at timestamptz, forgotten_reason text, superseded_at timestamptz, created_at timestamptz,
    valid_from timestamptz, valid_until timestamptz, expires_at timestamptz, ends_at timestamptz, held boolean,
    instant timestamptz, as_of timestamptz, known_as_of timestamptz
) returns text
    language sql immutable parallel safe
return case
    when forgotten_at is not null
        and (forgotten_reason in ('asked', 'retracted') or coalesce(known_as_of, as_of, instant) >= instant
            or forgotten_at <= coalesce(known_as_of, as_of)) then 'forgotten: ' || forgotten_reason
    when superseded_at is not null and coalesce(known_as_of, as_of, instant) >= instant then 'superseded'
    when valid_from > coalesce(as_of, known_as_of) and coalesce(as_of, known_as_of) < instant then 'not yet valid'
    -- an end that was only noted after `known_as_of` was not known then
    when valid_until <= coalesce(as_of, known_as_of, instant)
        and (superseded_at is null or known_as_of is null or superseded_at <= known_as_of) then 'no longer valid'
    when is_over(ends_at, held, coalesce(as_of, known_as_of, instant)) then
        case when expires_at <= coalesce(as_of, known_as_of, instant) then 'expired' else 'faded' end
    when created_at > known_as_of and known_as_of < instant then 'not yet known'
    when superseded_at <= known_as_of then 'superseded'
end;

-- Whether a pass takes a fact that is due: decay and the janitor all of them; a prune what has expired (hard), or what is in the last
-- quarter of its lifetime (soft). Seconds since the epoch.
create function pass_takes(
    work text, confirmed_at double precision, expires_at double precision, instant double precision
) returns boolean
    language sql immutable parallel safe
return work in ('decay', 'janitor')
    or (work in ('prune', 'hard prune', 'startup prune') and expires_at < instant)
    or (work in ('prune', 'soft prune') and expires_at > instant
        and confirmed_at + (expires_at - confirmed_at) * 0.75 < instant);

-- How many facts each namespace holds, so that no reader has to count them: of live facts by what `activity` says of them,
-- of forgotten ones by `forgotten_reason` alone.
create table tallies (
    namespace integer not null,
    decay_class text,
    decay_class_source text,
    tier smallint,
    fidelity smallint,
    branch smallint,
    held boolean,
    stale boolean,
    forgotten_reason text,
    facts bigint not null,
    unique nulls not distinct (
        namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, forgotten_reason
    )
);

-- What the tallies have changed by since they were last settled. Each statement appends what it changed, in its own
-- transaction, so that no writer waits for another, as on a common counter they would; for the same reason there is no
-- foreign key, which would lock the namespace's row. All of it is deleted again, so vacuum goes by the number of rows.
create table tally_changes (like tallies) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000
);

-- What the tallies of a namespace were: a row for each five minutes in which they changed, so one that rests has none,
-- and less and less of what is long ago. Keys are such as `tier 0`, `fidelity 1`, `class stable`, `forgotten expired`,
-- `due`.
create table tally_history (
    namespace integer not null references namespaces (id),
    at timestamptz not null,
    counts jsonb not null,
    primary key (namespace, at)
);

-- Which touches and reinforcements were counted lately, by the ids of their tasks, so that a second delivery is not
-- counted again; a maintenance task deletes old ones. Without foreign key, as `tally_changes`.
create table if not exists uses (
    namespace integer not null,
    id uuid not null,
    counted_at timestamptz not null default now(),
    primary key (namespace, id)
);

-- How the whole system kept up: a row for each five minutes, less and less of what is long ago. The most tasks that
-- waited in each queue, and how many writes had ever taken up to each bound of `storage.timings` until they could be read.
create table system_history (
    at timestamptz primary key,
    waiting jsonb not null,
    writes bigint[] not null
);

create table vectors (
    namespace integer not null,
    fact uuid not null,
    full_dims smallint not null,
    embedding halfvec storage main not null,
    primary key (namespace, fact),
    foreign key (namespace, fact) references facts (namespace, id) on delete cascade
);

create table signatures (
    namespace integer not null,
    fact uuid not null,
    live boolean not null default true,
    signature bit(1024) not null,
    primary key (namespace, fact),
    foreign key (namespace, fact) references facts (namespace, id) on delete cascade
);

-- What ended by itself, as little room as it takes: `body` is what `storage.packing` makes of a fact and all that belongs
-- to it, `words` marks the words in it. No index holds more than its id: who asks for it reads all of its namespace.
create table deep (
    forgotten_at timestamptz not null,
    namespace integer not null references namespaces (id),
    -- null where the embedder has changed since
    signature bit(1024),
    id uuid not null,
    words bit varying not null,
    body bytea storage external not null
);

-- How many of a question's words, by weight, a fact seems to hold: each is marked in one bit of its `words`. Eight words,
-- written out, so that PostgreSQL inlines it; with fewer the others weigh nothing.
create function marked(words bit varying, places integer[], weights double precision[])
    returns double precision
    language sql immutable parallel safe
return weights[1] * get_bit(words, places[1] % length(words)) + weights[2] * get_bit(words, places[2] % length(words))
    + weights[3] * get_bit(words, places[3] % length(words)) + weights[4] * get_bit(words, places[4] % length(words))
    + weights[5] * get_bit(words, places[5] % length(words)) + weights[6] * get_bit(words, places[6] % length(words))
    + weights[7] * get_bit(words, places[7] % length(words)) + weights[8] * get_bit(words, places[8] % length(words));

-- What was done to a fact since it was stored, as far as no other column says it; written by the function that does it, never
-- changed, and gone with the fact.
create table events (
    namespace integer not null,
    fact uuid not null,
    id bigint generated always as identity,
    at timestamptz not null,
    what text not null,
    details jsonb not null default '{}',
    primary key (namespace, fact, id),
    foreign key (namespace, fact) references facts (namespace, id) on delete cascade
);

-- What was forgotten on request, without a word of it, so that it stays so after its fact is purged: the SHA-256 of
-- the namespace's salt and the fact's hash.
create table forgotten_hashes (
    namespace integer not null references namespaces (id),
    digest bytea not null,
    fact uuid not null,
    forgotten_at timestamptz not null,
    reason text not null,
    primary key (namespace, digest)
);

-- Of which namespaces facts were erased since their words and pages were cleaned: what erases them appends it, in the
-- same transaction, so that no crash forgets it. Without foreign key, as `tally_changes`.
create table erasures (
    id bigint generated always as identity primary key,
    namespace integer not null
);

-- Markdown files of which the parts are facts of kind `chunk`, with their path as source: what was last read of each, so
-- that it is not read again until it changes.
create table documents (
    namespace integer not null references namespaces (id),
    path text not null,
    -- where the folder was that the first part of the path stands for
    folder text not null,
    digest bytea not null,
    read_at timestamptz not null,
    primary key (namespace, path)
);

create table lexemes (
    namespace integer not null references namespaces (id),
    lexeme text not null,
    facts integer not null,
    primary key (namespace, lexeme)
);

-- What readers see as long as it has not ended, which its `activity` says. The condition is written so that no partial index of live facts
-- answers it: without statistics the planner takes one of those for the way to single facts, and reads all of them.
-- A whole row has the type of its table, which is another one where Citus keeps the rows; so the type is written.
create view remembered as
select facts.namespace, id, kind, text, category, entity, key, value, importance, created_at, decay_class,
    case when held then 'infinity' else ends_at end as ends_at, pinned_until, decay_class_source, tags,
    row(activity.*)::activity as activity
from facts
join activity on activity.namespace = facts.namespace and activity.fact = facts.id
where coalesce(forgotten_at, superseded_at) is null;

-- Pairs of facts with one entity and key but different values. A pair counts only as long as both are remembered.
create table contradictions (
    namespace integer not null,
    fact uuid not null,
    other uuid not null check (fact < other),
    found_at timestamptz not null,
    -- when both were accepted
    accepted_at timestamptz,
    primary key (namespace, fact, other),
    foreign key (namespace, fact) references facts (namespace, id) on delete cascade,
    foreign key (namespace, other) references facts (namespace, id) on delete cascade
);

-- The two graphs: of facts, whose edges stay as they are stored, and of the names of entities, whose edges fade.
-- That one fact takes another's place is stored in `superseded_by` and `supersedes_id`, and needs no row here.
create table links (
    namespace integer not null,
    id uuid not null default gen_random_uuid(),
    source uuid not null,
    target uuid not null check (source <> target),
    type text not null check (type in ('SUPERSEDES', 'CAUSED_BY', 'PART_OF', 'RELATED_TO', 'DEPENDS_ON')),
    strength double precision not null default 1 check (strength between 0 and 1),
    created_at timestamptz not null,
    primary key (namespace, source, target, type),
    foreign key (namespace, source) references facts (namespace, id) on delete cascade,
    foreign key (namespace, target) references facts (namespace, id) on delete cascade
);

create table relations (
    namespace integer not null references namespaces (id),
    id bigint generated always as identity,
    -- an index's entry must fit a third of a page
    source text not null check (length(source) between 1 and 200),
    target text not null check (length(target) between 1 and 200),
    type text not null check (length(type) between 1 and 64),
    -- what it weighed when it was last observed; what it weighs since then follows from the instant
    initial_weight double precision not null default 1 check (initial_weight between 0 and 1),
    last_observed timestamptz not null,
    pinned boolean not null default false,
    -- as the last pass or observation saw it; no reader goes by it
    weight double precision not null check (weight between 0 and 1),
    created_at timestamptz not null,
    primary key (namespace, id),
    check (lower(source) <> lower(target))
);

-- What a relation weighs at an instant: half as much with every half-life without an observation. No
-- product gets so small that it underflows, which is an error. Half-life in days.
create function relation_weight(
    initial_weight double precision, last_observed timestamptz, pinned boolean, instant timestamptz,
    half_life double precision
) returns double precision
    language sql immutable parallel safe
return case
    when pinned then initial_weight
    when initial_weight < 1e-100 then 0
    else initial_weight * power(
        0.5, least(greatest(date_part('epoch', instant - last_observed) / 86400 / half_life, 0), 500)
    )
end;

-- Pairs of facts that say nearly the same of the same. A pair counts only as long as both are remembered.
create table likenesses (
    namespace integer not null,
    fact uuid not null,
    other uuid not null check (fact < other),
    similarity double precision not null,
    found_at timestamptz not null,
    -- when the one that had been merged into the other was restored: they are not the same
    apart_at timestamptz,
    primary key (namespace, fact, other),
    foreign key (namespace, fact) references facts (namespace, id) on delete cascade,
    foreign key (namespace, other) references facts (namespace, id) on delete cascade
);

-- By which rules all `due_at` and `ends_at` were computed; when an operator changes them, every fact is due.
create table fading_rules (
    only_row boolean primary key default true check (only_row),
    rules jsonb not null
);

-- When the last pass over all namespaces began, by the database's clock.
create table pass_clock (
    only_row boolean primary key default true check (only_row),
    at timestamptz not null
);

create table decay_runs (
    id uuid primary key,
    work text not null default 'decay'
        check (
            work in (
                'decay', 'prune', 'hard prune', 'soft prune', 'startup prune', 'review', 'consolidation', 'janitor',
                'relations'
            )
        ),
    planned_for timestamptz not null,
    started_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz,
    -- one scheduled plan a minute, however many beats there are; null for a pass on request
    slot timestamptz,
    -- the task that waits for the counters
    asked_by text not null,
    dry_run boolean not null default false,
    force boolean not null default false,
    -- whose facts alone it takes; null for those of all
    namespace integer references namespaces (id),
    -- the instant of the finished pass before this one; null for the first
    passed_at timestamptz,
    unique (work, slot)
);

create table decay_parts (
    run uuid not null references decay_runs (id) on delete cascade,
    segment smallint not null,
    part smallint not null,
    quota bigint not null,
    done_at timestamptz,
    processed bigint not null default 0,
    changed bigint not null default 0,
    hot bigint not null default 0,
    warm bigint not null default 0,
    cold bigint not null default 0,
    compressed bigint not null default 0,
    fingerprinted bigint not null default 0,
    expired bigint not null default 0,
    faded bigint not null default 0,
    culled bigint not null default 0,
    aged bigint not null default 0,
    stale bigint not null default 0,
    decayed bigint not null default 0,
    held bigint not null default 0,
    duration_ms double precision not null default 0,
    crowded bigint not null default 0,
    primary key (run, segment, part)
);

-- Up to which fact a pass goes in a namespace where the forget limit holds some back, so that all its tasks agree: the
-- facts end in order of their value and id. `allowed` is how many may; `used` and `last_ends_at` belong to earlier versions.
create table decay_allowances (
    run uuid not null references decay_runs (id) on delete cascade,
    namespace integer not null references namespaces (id),
    allowed bigint not null,
    used bigint not null default 0,
    last_ends_at double precision,
    last_fact uuid,
    last_rank double precision,
    primary key (run, namespace)
);

-- How many facts of a namespace ended without having been asked for, and how many more passes ended because they were,
-- minute by minute, for as long as the forget limit looks back. Without foreign key, as `tally_changes`.
create table endings (
    namespace integer not null,
    at timestamptz not null,
    facts bigint not null,
    asked bigint not null default 0,
    primary key (namespace, at)
);

-- Which shares of a namespace may end so within a day and a week, as set by the newest worker or pass.
create table forget_limits (
    only_row boolean primary key default true check (only_row),
    a_day double precision not null default 0.2,
    a_week double precision not null default 0.5
);
insert into forget_limits default values;

-- What the last run of the janitor has done to a namespace, or passes have since the one before; each run writes it
-- again. Of the ids the first ones are kept, of all the number.
create table janitors (
    namespace integer primary key references namespaces (id),
    run uuid not null,
    last_run_turn bigint not null,
    last_run_at timestamptz not null,
    total_runs bigint not null,
    culled_facts bigint not null,
    culled_fact_ids uuid[] not null,
    culled_episodes bigint not null,
    culled_episode_ids uuid[] not null,
    stale_episodes bigint not null,
    stale_episode_ids uuid[] not null
);

-- Indexes -----------------------------------------------------------------------------------------------------------

-- storing: one live fact for each thing said in a namespace, also with concurrent writers
create unique index facts_said_once on facts (namespace, hash)
    where forgotten_at is null and superseded_at is null;

-- recall, text arm: words, namespace and tags in one intersection; so tags need no index of their own
create index facts_search on facts using gin (search) with (fastupdate = off);

-- recall, contiguity: the facts stored just before and after
create index facts_neighbours on facts (namespace, session, turn) where session is not null;

-- salience: what has none yet, from earlier versions and imports
create index facts_unestimated on facts (namespace, id) where content_salience is null;

-- documents: the chunks of a file, and whether a namespace has any
create index facts_chunks on facts (namespace, left(source, 200)) where kind = 'chunk';

-- items: what is kept below a path; what is kept at one place is found by its hash
create index facts_items on facts (namespace, left(entity, 200) collate "C")
    where kind = 'item' and forgotten_at is null and superseded_at is null;

-- contradictions: live facts about the same, newest last. An index's entry must fit a third of a page, so only the
-- beginnings of long names stand in it.
create index facts_topics
    on facts (namespace, left(lower(entity), 200), left(lower(key), 200), created_at)
    where entity is not null and forgotten_at is null and superseded_at is null;

-- contradictions: deleting a fact takes along those that name it second
create index contradictions_other on contradictions (namespace, other);

-- recall, entities named in the question: their facts, newest last
create index facts_entities on facts (namespace, left(lower(entity), 200), created_at)
    where entity is not null and forgotten_at is null and superseded_at is null;

-- recall: the strongest links from a fact, and to it; deleting a fact takes both along
create index links_source on links (namespace, source, strength desc);
create index links_target on links (namespace, target, strength desc);

-- observing a relation again, whatever its case; recall: what an entity is related to
create unique index relations_once on relations (namespace, lower(source), lower(target), type);

-- recall: what is related to an entity
create index relations_target on relations (namespace, lower(target));

-- recall, vector arm: all signatures of a namespace without touching the table
create index signatures_scan on signatures (namespace, live) include (fact, signature);

-- decay: what is due in a segment, oldest first
create index activity_due on activity (segment, due_at);

-- capacity: the least valuable live facts of a namespace
create index activity_by_value on activity (
    namespace, value_rank(worth, base, coactivations, last_seen_at, pinned_until, recall_count, confirmations)
) where not retired;

-- embed_pending: facts that still have no vector
create index activity_pending on activity (namespace, fact) where fidelity = 0;

-- consolidation: facts with a signature whose near-duplicates were not looked for yet
create index activity_uncompared on activity (namespace) where not compared and fidelity <> 0;

-- consolidation: deleting a fact takes along the likenesses that name it second
create index likenesses_other on likenesses (namespace, other);

-- a pass that is allowed to forget takes up what an earlier one held back
create index activity_held on activity (namespace, fact) where held;

-- storing: the persistent episodes that the turns just stored have outrun
create index activity_episodes on activity (namespace, occurred) where branch = 1 and outrun_at is null;

-- stats: what is pinned
create index activity_pinned on activity (namespace, pinned_until) where pinned_until is not null;

-- stats: what its counters have changed by
create index tally_changes_namespace on tally_changes (namespace);

-- janitor: what was culled of a namespace, and which of its episodes got stale, since its last run
create index facts_culled on facts (namespace, forgotten_at) where forgotten_reason in ('culled', 'aged');
create index events_stale on events (namespace, at) where what = 'stale';

-- review: how many facts an LLM has pruned in the last day, restored ones included
create index events_pruned on events (namespace, at)
    where what = 'forgotten' and details ->> 'reason' = 'pruned';

-- forgotten: the tombstones of a namespace, newest first
create index facts_tombstones on facts (namespace, forgotten_at desc, id desc)
    where forgotten_at is not null;

-- purge: what was forgotten long ago, oldest first
create index facts_forgotten on facts (forgotten_at) where forgotten_at is not null;

-- deep memory: a fact by its id; a hash of that is enough, and takes half of the room
create index deep_facts on deep (namespace, uuid_hash(id));

-- purge: what was superseded long ago, oldest first
create index facts_superseded on facts (superseded_at) where superseded_at is not null and forgotten_at is null;

-- forgetting again what is purged already
create index forgotten_hashes_fact on forgotten_hashes (namespace, fact);

-- decay_runs: the newest first, and those that never finished
create index decay_runs_started on decay_runs (started_at desc);

-- the pass before this one
create index decay_runs_passes on decay_runs (started_at desc)
    where finished_at is not null and not dry_run and work in ('decay', 'prune', 'hard prune', 'startup prune', 'janitor');

-- The forget limit --------------------------------------------------------------------------------------------------

-- The instant of the last finished pass over a namespace, or over all where none is named.
create function last_pass(tenant integer) returns timestamptz
    language sql stable parallel safe set search_path from current as $$
    select planned_for from decay_runs
    where finished_at is not null and not dry_run
        and work in ('decay', 'prune', 'hard prune', 'startup prune', 'janitor')
        and (namespace is null or namespace = tenant)
    order by started_at desc
    limit 1
$$;

-- Whether a fact ends as its owner asked: a lifetime that the owner chose has run out, not later than a day after the
-- last pass. Before the first pass any time will do. A lifetime includes the instant at which it expires.
create or replace function asked_for(
    decay_class_source text, expires_at timestamptz, passed_at timestamptz, instant timestamptz
) returns boolean
    language sql immutable parallel safe
return coalesce(decay_class_source = 'explicit', false)
    and expires_at < instant and expires_at <= coalesce(passed_at + interval '1 day', 'infinity');

-- How many of a share are left when `lived` facts lived before some of them ended: never fewer than five in all, unless
-- the share is 0.
create function share_left(share double precision, lived numeric, ended numeric) returns bigint
    language sql immutable parallel safe
return case
    when share <= 0 then 0
    else greatest(greatest(floor(share * lived), 5) - ended, 0)
end;

-- How many more facts of a namespace may end at an instant without having been asked for, as in `core.limit`; null
-- without limit.
create function forget_room(tenant integer, instant timestamptz) returns bigint
    language sql stable parallel safe set search_path from current as $$
    select case when a_day < 1 and not exists (select from namespaces where id = tenant and branch_of is not null) then least(
        share_left(a_day, live + all_of_day, of_day),
        case when a_week < 1 then share_left(a_week, live + all_of_week, of_week) end
    ) end
    from forget_limits
    cross join (
        select coalesce(sum(facts) filter (where at > instant - interval '1 day'), 0) as of_day,
            coalesce(sum(facts), 0) as of_week,
            coalesce(sum(facts + asked) filter (where at > instant - interval '1 day'), 0) as all_of_day,
            coalesce(sum(facts + asked), 0) as all_of_week
        from endings
        where namespace = tenant and at > instant - interval '7 days'
    ) as ended
    cross join (
        select coalesce(sum(facts), 0) as live
        from (
            select facts from tallies where namespace = tenant and forgotten_reason is null
            union all
            select facts from tally_changes where namespace = tenant and forgotten_reason is null
        ) as counted
    ) as counted
$$;

-- What the next pass over a namespace will make of what is over: it will hold what ended within a gap between passes, and
-- what is worth no less than this fact, unless its owner asked for the end by `passed_at` and a day. Null where there is none.
create type outlook as (
    gap_from timestamptz, gap_until timestamptz, passed_at timestamptz, value_rank double precision, fact uuid
);

-- The outlook of a namespace at an instant. A gap is there if one waits for its owner, or if the next pass will find one,
-- as in `core.gaps`. What ends is due within a moment, so each segment is asked for what is due. Statements ask for this
-- in an uncorrelated subquery, which runs once, and only if they meet a fact that is over.
create function outlook_of(tenant integer, instant timestamptz) returns outlook
    language sql stable parallel safe set search_path from current as $$
    select row(began, ended, passed_at, exceeding.value_rank, exceeding.fact)::outlook
    from (
        select coalesce(gap_from, at) as began,
            case when at is null then gap_until else statement_timestamp() end as ended, last_pass(tenant) as passed_at
        from namespaces
        left join pass_clock on branch_of is null and statement_timestamp() - at
            > case when pg_postmaster_start_time() <= at then interval '1 day' else interval '7 days' end
        where id = tenant
        offset 0
    ) as known
    left join lateral (
        select value_rank(
            worth, base, coactivations, last_seen_at, pinned_until, recall_count, confirmations
        ), fact
        from generate_series(0, (select max(segment) from activity)) as series (segment)
        join activity on activity.segment = series.segment and due_at <= instant + interval '1 second'
        where namespace + 0 = tenant and ends_at <= instant and not held
            and not asked_for(decay_class_source, expires_at, passed_at, instant)
            and not coalesce(ends_at > began and ends_at <= ended, false)
        order by 1, fact
        offset coalesce(forget_room(tenant, instant), 9223372036854775807)
        limit 1
    ) as exceeding on true
$$;

-- Whether a pass at an instant would hold a fact that is over, or go on holding it.
create function stays(one activity, next outlook, instant timestamptz) returns boolean
    language sql immutable parallel safe
return (one).ends_at <= instant and not (one).retired and (
    coalesce((one).ends_at > (next).gap_from and (one).ends_at <= (next).gap_until, false)
    or ((one).held or coalesce((value_rank(
            (one).worth, (one).base, (one).coactivations, (one).last_seen_at, (one).pinned_until, (one).recall_count,
            (one).confirmations
        ), (one).fact) >= ((next).value_rank, (next).fact), false))
        and not asked_for((one).decay_class_source, (one).expires_at, (next).passed_at, instant)
);

-- Whether a fact that is over stays visible at an instant, whether or not a pass has come. Written so that the outlook is
-- only asked for where a pass would take the fact.
create function is_held(one activity, next outlook, instant timestamptz) returns boolean
    language sql immutable parallel safe
return (one).held and (one).due_at > instant or stays(one, next, instant);

-- Whether readers see a fact no more, because it has ended by itself and nothing keeps it visible.
create function has_ended(one activity, next outlook, instant timestamptz) returns boolean
    language sql immutable parallel safe
return is_over((one).ends_at, is_held(one, next, instant), instant);

-- Triggers ----------------------------------------------------------------------------------------------------------

-- They read what changed into a variable first, because the table of that is not known where Citus plans what they write.

create function tally_activity_added() returns trigger
    language plpgsql set search_path from current as $$
declare
    changes tally_changes[] := array(
        select row(namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, null, count(*))::tally_changes
        from new_rows
        where not retired
        group by namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale
    );
begin
    insert into tally_changes select * from unnest(changes);
    return null;
end
$$;

create function tally_activity_changed() returns trigger
    language plpgsql set search_path from current as $$
declare
    changes tally_changes[] := array(
        select row(
            namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, null, sum(change)
        )::tally_changes
        from (
            select namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, 1 as change
            from new_rows where not retired
            union all
            select namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, -1
            from old_rows where not retired
        ) as changed
        group by namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale
        having sum(change) <> 0
    );
begin
    if cardinality(changes) > 0 then
        insert into tally_changes select * from unnest(changes);
    end if;
    return null;
end
$$;

create function tally_activity_deleted() returns trigger
    language plpgsql set search_path from current as $$
begin
    insert into tally_changes (namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, facts)
    values (old.namespace, old.decay_class, old.decay_class_source, old.tier, old.fidelity, old.branch,
        old.held, old.stale, -1);
    return null;
end
$$;

create trigger tally_added after insert on activity
    referencing new table as new_rows for each statement execute function tally_activity_added();
create trigger tally_changed after update on activity
    referencing old table as old_rows new table as new_rows
    for each statement execute function tally_activity_changed();
-- A purge deletes row by row, through the foreign key, and what it deletes is retired.
create trigger tally_deleted after delete on activity
    for each row when (not old.retired) execute function tally_activity_deleted();

-- Tombstones are few among the facts that are added, and wide, so no table of all that is new is made for them.
create function tally_tombstone_added() returns trigger
    language plpgsql set search_path from current as $$
begin
    insert into tally_changes (namespace, forgotten_reason, facts) values (new.namespace, new.forgotten_reason, 1);
    return null;
end
$$;

create function tally_tombstones_changed() returns trigger
    language plpgsql set search_path from current as $$
declare
    changes tally_changes[] := array(
        select row(namespace, null, null, null, null, null, null, null, forgotten_reason, sum(change))::tally_changes
        from (
            select namespace, forgotten_reason, 1 as change from new_rows
            where forgotten_reason is not null and superseded_at is null
            union all
            select namespace, forgotten_reason, -1 from old_rows
            where forgotten_reason is not null and superseded_at is null
        ) as changed
        group by namespace, forgotten_reason
        having sum(change) <> 0
    );
begin
    if cardinality(changes) > 0 then
        insert into tally_changes select * from unnest(changes);
    end if;
    return null;
end
$$;

create function tally_tombstones_deleted() returns trigger
    language plpgsql set search_path from current as $$
declare
    changes tally_changes[] := array(
        select row(namespace, null, null, null, null, null, null, null, forgotten_reason, -count(*))::tally_changes
        from old_rows
        where forgotten_reason is not null and superseded_at is null
        group by namespace, forgotten_reason
    );
begin
    insert into tally_changes select * from unnest(changes);
    return null;
end
$$;

create trigger tally_added after insert on facts
    for each row when (new.forgotten_reason is not null and new.superseded_at is null)
    execute function tally_tombstone_added();
create trigger tally_changed after update on facts
    referencing old table as old_rows new table as new_rows
    for each statement execute function tally_tombstones_changed();
create trigger tally_deleted after delete on facts
    referencing old table as old_rows for each statement execute function tally_tombstones_deleted();

create function note_erasures() returns trigger
    language plpgsql set search_path from current as $$
declare
    namespaces integer[] := array(select distinct namespace from old_rows);
begin
    insert into erasures (namespace) select unnest(namespaces);
    return null;
end
$$;

create trigger erased after delete on facts
    referencing old table as old_rows for each statement execute function note_erasures();

create function tally_deep_added() returns trigger
    language plpgsql set search_path from current as $$
declare
    changes tally_changes[] := array(
        select row(namespace, null, null, null, null, null, null, null, 'deep', count(*))::tally_changes
        from new_rows group by namespace
    );
begin
    insert into tally_changes select * from unnest(changes);
    return null;
end
$$;

create function tally_deep_deleted() returns trigger
    language plpgsql set search_path from current as $$
declare
    changes tally_changes[] := array(
        select row(namespace, null, null, null, null, null, null, null, 'deep', -count(*))::tally_changes
        from old_rows group by namespace
    );
begin
    insert into tally_changes select * from unnest(changes);
    return null;
end
$$;

create trigger tally_added after insert on deep
    referencing new table as new_rows for each statement execute function tally_deep_added();
create trigger tally_deleted after delete on deep
    referencing old table as old_rows for each statement execute function tally_deep_deleted();
create trigger erased after delete on deep
    referencing old table as old_rows for each statement execute function note_erasures();
