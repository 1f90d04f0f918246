-- Ebb's tables, indexes and functions: the snapshot for an empty database. `ebb migrate` applies it, and brings an
-- older database to the same state with the numbered files in workers/storage/migrations. A change of the schema is
-- both: a new migration, and the same change here, with its number in the first statements below.

do $$
begin
    if to_regclass(quote_ident(current_schema()) || '.schema_version') is not null then
        raise exception 'this database has a schema of Ebb already' using hint = 'bring it up to date with: ebb migrate';
    end if;
end $$;

-- Compatibility with older code. A migration raises it only if earlier releases cannot work with the schema.
create table schema_version (
    version integer not null,
    applied_at timestamptz not null default now()
);
insert into schema_version (version) values (1);

-- The applied migrations; in a new database, the newest one that the snapshot includes.
create table schema_migrations (
    number integer primary key,
    name text not null,
    applied_at timestamptz not null default now()
);
insert into schema_migrations (number, name) values (48, 'snapshot');

create extension if not exists vector with schema public;

-- Tables ------------------------------------------------------------------------------------------------------------

-- The embedder of all vectors; Ebb does not start with another one.
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
    -- live facts and their words by the last refresh of `lexemes`
    counted_facts bigint not null default 0,
    counted_words bigint not null default 0,
    counted_at timestamptz,
    -- since when facts are held by the forget limit
    held_since timestamptz,
    -- for the digests in `forgotten_hashes`, so that those of different namespaces cannot be compared
    salt uuid not null default gen_random_uuid(),
    -- number of stored turns: distinct pairs of session and turn; never decreases
    turns bigint not null default 0,
    -- settings of its own, in the documented names; when they were chosen; and when they were written, null once passes
    -- have applied them to every fact
    settings jsonb not null default '{}',
    chosen_at timestamptz,
    settings_changed_at timestamptz,
    -- number of due facts in the latest row of `tally_history`
    due_noted bigint not null default 0,
    -- a period without passes: facts that ended in it are held until the owner confirms
    gap_from timestamptz,
    gap_until timestamptz,
    -- of a branch: its original, by how much its instants are shifted, and when it was complete
    branch_of text,
    branch_age interval,
    branched_at timestamptz,
    -- `counted_facts` when the salience of all facts was last estimated
    estimated_facts bigint not null default 0
);

-- Which shard a namespace is on, where there are several; one that is missing here is on the first, this schema. Further
-- shards are schemas with the same tables, of which this one stays empty.
create table directory (
    name text primary key,
    shard integer not null check (shard >= 0)
);

-- A process that does not know of the other shards must not begin a second namespace of a name.
create function refuse_second() returns trigger
    language plpgsql set search_path from current as $$
begin
    if exists (select from directory where directory.name = new.name and shard > 0) then
        raise exception 'namespace % is on another shard: restart this process with the EBB_SHARDS of the others', new.name;
    end if;
    return new;
end
$$;

create trigger once before insert on namespaces for each row execute function refuse_second();

-- Continues a transaction on the shard of a namespace, and returns the first shard's schema and the shard, if it has one. A
-- function, as Citus would evaluate a query of the directory on its node, where it would set the search path.
create function route(namespace text) returns table (home text, shard integer)
    language plpgsql as $$
begin
    home := current_schema();
    select directory.shard into shard from directory where directory.name = namespace;
    if shard > 0 then
        perform set_config('search_path', quote_ident(home || to_char(shard, '"_"FM0000')) || ', public', true);
    end if;
    return next;
end
$$;

-- Keys to the HTTP API, each for one namespace. Only the SHA-256 of a key is stored; keys are random, so no salt is
-- needed.
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

-- The text search configuration for stemming; Ebb does not start with another one.
create table languages (
    only_row boolean primary key default true check (only_row),
    name text not null
);
insert into languages (name) values ('english');

-- Written forms of words without stop words. `storage.words` adapts the dictionary and `stemmed` to the language.
create text search dictionary ebb_written (template = simple, stopwords = english);
create text search configuration ebb_written (copy = simple);
alter text search configuration ebb_written
    alter mapping for asciiword, word, asciihword, hword, hword_asciipart, hword_part with ebb_written;
create function stemmed(body text) returns tsvector language sql immutable parallel safe
    return to_tsvector('english', body);

-- Character ranges of scripts without blanks between words: Thai to Khmer, kana, Han, Hangul.
create function unspaced() returns text
    language sql immutable parallel safe
return '\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff'
    '\U00020000-\U0003ffff';

-- Unigrams and bigrams of such scripts: each character, then the pairs that begin at odd positions of a run, then those
-- at even positions; a single character left at the end of a run is dropped.
create function in_pairs(body text) returns text
    language sql immutable parallel safe
return (
    select regexp_replace(body, '([' || unspaced() || '])', ' \1 ', 'g')
        || regexp_replace(regexp_replace(runs || ' ' || regexp_replace(runs, '(\A| ).', ' ', 'g'),
            '([^ ])([^ ])', ' \1\2 ', 'g'), '(\A| )[^ ](?= |\Z)', ' ', 'g')
    from regexp_replace(body, '[^' || unspaced() || ']+', ' ', 'g') as runs
);

-- Characters that are ignored in words, for a bracket expression: soft hyphens, Hebrew points, Arabic short vowels and
-- tatweel, joiners, and marks of direction.
create function unseen() returns text
    language sql immutable parallel safe
return '\u00ad\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4'
    '\u06e7\u06e8\u06ea-\u06ed\u200d-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff';

-- The input of the text search parser: without the characters by which it takes several words for one path, host or
-- number or for a tag of HTML, or reads a run of words again from each of them, and normalised. ASCII texts need no
-- normalisation. The length is limited so that the tsvector always fits.
-- U+0345, left where no Greek letter is above it, is a letter to the parser and an accent to `folded`: an empty lexeme.
-- So are unseen characters.
create function readable(body text) returns text
    language sql immutable parallel safe
return case when octet_length(body) = length(body)
    then replace(replace(replace(replace(replace(replace(
        left(body, 65536), '.', ' '), '/', ' '), '-', ' '), '_', ' '), '@', ' '), '<', ' ')
    else in_pairs(replace(regexp_replace(
        translate(normalize(left(body, 65536), nfkc), U&'./-_@<\0345', '       '), '[' || unseen() || ']', '', 'g'), 'ß', 'ss'))
end;

-- Names and lexemes are compared in lower case, without accents and other special letters, as `core.names.folded` has them.
create function folded(name text) returns text
    language sql immutable parallel safe
return case when octet_length(name) = length(name) then lower(name)
    else normalize(replace(replace(replace(replace(replace(replace(replace(replace(translate(
        lower(regexp_replace(normalize(name, nfkd), '[\u0300-\u036f' || unseen() || ']', '', 'g')),
        'øØłŁđĐħĦıðÐςىة٠١٢٣٤٥٦٧٨٩۰۱۲۳۴۵۶۷۸۹', 'oollddhhiddσيه01234567890123456789'),
        'ß', 'ss'), 'ẞ', 'ss'), 'æ', 'ae'), 'Æ', 'ae'), 'œ', 'oe'), 'Œ', 'oe'), 'þ', 'th'), 'Þ', 'th'), nfc)
end;

create function without_accents(lexemes tsvector) returns tsvector
    language sql immutable parallel safe
return case when octet_length(lexemes::text) = length(lexemes::text) then lexemes
    else folded(lexemes::text)::tsvector
end;

create function stems(body text) returns tsvector
    language sql immutable parallel safe
return without_accents(stemmed(readable(body)));

-- Written forms without accents that differ from all stems. Stop words are removed before the accents.
create function as_written(readable text, stems tsvector) returns tsvector
    language sql immutable parallel safe
return ts_delete(
    case when octet_length(readable) = length(readable) then to_tsvector('ebb_written', readable)
        else folded(to_tsvector('ebb_written', readable)::text)::tsvector
    end,
    tsvector_to_array(stems)
);

-- PL/pgSQL runs this function and the next in half the time of SQL. The search path is that of the creation, as dumps
-- are restored without one, and nodes of a cluster use another. As `without_accents`, but the stems are converted to
-- text only once.
create function words(body text) returns tsvector
    language plpgsql immutable parallel safe set search_path from current as $$
declare
    plain constant text := readable(body);
    stems tsvector := stemmed(plain);
    shown constant text := stems;
begin
    if octet_length(shown) <> length(shown) then
        stems := folded(shown)::tsvector;
    end if;
    return stems || as_written(plain, stems);
end $$;

-- The lexemes of a fact for GIN and BM25. Category, entity, key and value are included twice, the simple extension of
-- BM25 to weighted fields (Robertson, Zaragoza and Taylor, 2004), which does not increase the index. The namespace and
-- the tags are lexemes too, with blanks, which the parser never yields, so the index separates tenants. Immutable, as a
-- generated column requires it.
create function search_lexemes(
    namespace integer, body text, category text, entity text, key text, value text, tags text[]
) returns tsvector
    language plpgsql immutable parallel safe set search_path from current as $$
declare
    labels text[] := array['namespace ' || namespace];
    found tsvector := words(body);
    named tsvector;
begin
    if coalesce(category, entity, key, value) is not null then
        named := words(concat_ws(' ', category, entity, key, value));
        found := named || named || found;
    end if;
    if tags <> '{}' then
        labels := labels || array(select 'tag ' || tag from unnest(tags) as tag);
    end if;
    return found || array_to_tsvector(labels);
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
    -- the caller's object, returned unchanged and not read by Ebb
    metadata json,
    -- a string or a number, returned unchanged
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
    -- the run that forgot it, if any
    forgotten_by uuid,
    -- when the tombstone was written, by the database's clock
    tombstone_at timestamptz,
    -- the speaker, if known
    role text check (role in ('user', 'assistant', 'system', 'tool')),
    -- how likely its text answers later questions, given or estimated; null until it is estimated
    content_salience real check (content_salience between 0 and 1),
    -- whether it was given, so that it is never estimated
    salience_given boolean not null default false,
    primary key (namespace, id)
);

-- The decay state of a fact, updated by every touch: narrow, with space on each page for new versions of some rows.
create table activity (
    namespace integer not null,
    fact uuid not null,
    segment smallint not null,
    -- by hygiene: 0 semantic, culled by confidence; 1 persistent episode, ages out; 2 permanent episode, becomes
    -- stale; 3 chunk, no hygiene
    branch smallint not null default 0 check (branch between 0 and 3),
    base double precision not null,
    coactivations integer not null default 0,
    last_seen_at timestamptz not null,
    confidence double precision not null default 1,
    last_confirmed_at timestamptz not null,
    expires_at timestamptz not null default 'infinity',
    decay_class text,
    -- whether it was derived from the words or given by the caller; null without class
    decay_class_source text check (decay_class_source in ('auto', 'explicit')),
    -- number of soft-decay halvings that passes have counted; `confidence` itself does not change
    halvings smallint not null default 0,
    recall_count integer not null default 0,
    last_accessed_at timestamptz,
    -- decay intervals before the last use, newest first, eleven bytes each, see `core.decay_intervals`
    spells bytea check (length(spells) <= 176),
    -- number of reinforcements, by callers or by merged near-duplicates
    confirmations integer not null default 0,
    -- whether it was compared with earlier facts for near-duplicates
    compared boolean not null default false,
    tier smallint not null,
    -- 0 no vector yet, 1 full, 2, 4, 8 … number of dimensions averaged into one, 32767 signature only
    fidelity smallint not null,
    -- when the fact ends without further use; hidden from then on, whether or not a pass has run
    ends_at timestamptz not null default 'infinity',
    -- ended, but visible because of the forget limit
    held boolean not null default false,
    -- permanent episode that has not been used for long, as of the last pass
    stale boolean not null default false,
    -- forgotten or superseded, see `facts`
    retired boolean not null default false,
    due_at timestamptz not null,
    -- exempt from decay until then, or without end; null if it was never pinned
    pinned_until timestamptz,
    -- lifetime in seconds that is saved during a pin without end
    kept_lifetime double precision,
    -- of an episode: when it was encoded, the namespace's turns at that time, and when the turn limit was reached
    encoded_at timestamptz,
    occurred bigint,
    outrun_at timestamptz,
    -- part of its value by content, importance and links, in log odds
    worth real not null default 0,
    -- recent questions that strengthened it, see `core.repeats`
    asked bytea,
    primary key (namespace, fact),
    foreign key (namespace, fact) references facts (namespace, id) on delete cascade,
    check ((decay_class is null) = (decay_class_source is null))
) with (fillfactor = 90);

-- Whether a fact has ended at an instant and is not held. `held` is the result of `is_held`, which includes what the
-- next pass will hold; queries use `has_ended`.
create or replace function is_over(ends_at timestamptz, held boolean, instant timestamptz) returns boolean
    language sql immutable parallel safe
return ends_at <= instant and not held;

-- Part of a fact's value by content salience, importance and links, in log odds, see `core.value`.
create function fact_worth(content real, importance double precision, links bigint) returns real
    language sql immutable parallel safe
return ln(
        least(greatest(coalesce(content, 0.5)::double precision, 0.01), 0.99)
        / (1 - least(greatest(coalesce(content, 0.5)::double precision, 0.01), 0.99))
    ) + 2 * (importance - 0.5) + 0.2 * ln(1 + links::double precision);

-- The rank of facts by value, independent of the instant: log odds at the epoch, see `core.value`. The strength is at
-- least 1e-9, as PostgreSQL raises an error on underflow.
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

-- Activity as the decay functions read it: epoch seconds, no nulls; `due_at` and `ends_at` unchanged for their indexes.
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

-- The rule by which a read at an instant hides a fact; null if it is visible. `as_of` asks what was true at that time,
-- `known_as_of` what was stored by that time; by default the present. Facts forgotten on request are always hidden.
-- Facts that decay forgot, that have ended or were superseded are visible as of earlier instants; a read as of the
-- present or later equals one of the present.
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
    -- an end that was recorded after `known_as_of` was not known then
    when valid_until <= coalesce(as_of, known_as_of, instant)
        and (superseded_at is null or known_as_of is null or superseded_at <= known_as_of) then 'no longer valid'
    when is_over(ends_at, held, coalesce(as_of, known_as_of, instant)) then
        case when expires_at <= coalesce(as_of, known_as_of, instant) then 'expired' else 'faded' end
    when created_at > known_as_of and known_as_of < instant then 'not yet known'
    when superseded_at <= known_as_of then 'superseded'
end;

-- Whether a pass takes a due fact: decay and the janitor take all, a prune those that have expired (hard) or are in the
-- last quarter of their lifetime (soft). In epoch seconds.
create function pass_takes(
    work text, confirmed_at double precision, expires_at double precision, instant double precision
) returns boolean
    language sql immutable parallel safe
return work in ('decay', 'janitor')
    or (work in ('prune', 'hard prune', 'startup prune') and expires_at < instant)
    or (work in ('prune', 'soft prune') and expires_at > instant
        and confirmed_at + (expires_at - confirmed_at) * 0.75 < instant);

-- The number of facts of each namespace, so that readers need not count: live facts by columns of `activity`, forgotten
-- ones by `forgotten_reason` alone.
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

-- Changes of the tallies that are not added to them yet. Each statement appends its changes, so that writers do not
-- wait for each other as they would at a shared counter; without a foreign key, which would lock the namespace's row.
-- All rows are deleted soon, so autovacuum goes by their number.
create table tally_changes (like tallies) with (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000
);

-- Time series of the tallies: a row for each five minutes with changes, at a lower resolution for older ones. Keys are
-- such as `tier 0`, `fidelity 1`, `class stable`, `forgotten expired`, `due`.
create table tally_history (
    namespace integer not null references namespaces (id),
    at timestamptz not null,
    counts jsonb not null,
    primary key (namespace, at)
);

-- Ids of recent touches and reinforcements, for deduplication; a maintenance task deletes old ones. Without foreign
-- key, as `tally_changes`.
create table if not exists uses (
    namespace integer not null,
    id uuid not null,
    counted_at timestamptz not null default now(),
    primary key (namespace, id)
);

-- Time series of the system, in steps of five minutes, coarser for older ones: the maximum length of each queue, and
-- the cumulative histogram of write latencies with the bounds of `coordination.timings`.
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

-- Facts that decay forgot, packed: `body` is a fact with its rows of other tables, see `storage.packing`; `words` is a
-- Bloom filter of its words. Only the id is indexed; a search reads the whole namespace.
create table deep (
    forgotten_at timestamptz not null,
    namespace integer not null references namespaces (id),
    -- null if the embedder was replaced since
    signature bit(1024),
    id uuid not null,
    words bit varying not null,
    body bytea storage external not null
);

-- The sum of the weights of a question's words that the Bloom filter `words` contains. Written out for eight words, so
-- that PostgreSQL inlines it; unused ones have weight 0.
create function marked(words bit varying, places integer[], weights double precision[])
    returns double precision
    language sql immutable parallel safe
return weights[1] * get_bit(words, places[1] % length(words)) + weights[2] * get_bit(words, places[2] % length(words))
    + weights[3] * get_bit(words, places[3] % length(words)) + weights[4] * get_bit(words, places[4] % length(words))
    + weights[5] * get_bit(words, places[5] % length(words)) + weights[6] * get_bit(words, places[6] % length(words))
    + weights[7] * get_bit(words, places[7] % length(words)) + weights[8] * get_bit(words, places[8] % length(words));

-- The history of a fact, as far as no column has it; append-only, and deleted with the fact.
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

-- Deletion requests, which remain after the fact is purged, without its text: the SHA-256 of the namespace's salt and
-- the fact's hash.
create table forgotten_hashes (
    namespace integer not null references namespaces (id),
    digest bytea not null,
    fact uuid not null,
    forgotten_at timestamptz not null,
    reason text not null,
    primary key (namespace, digest)
);

-- Namespaces with erased facts whose words and pages are not cleaned yet, written by triggers in the same transaction.
-- Without foreign key, as `tally_changes`.
create table erasures (
    id bigint generated always as identity primary key,
    namespace integer not null
);

-- Indexed Markdown files, whose chunks are facts of kind `chunk` with the path as source; the digest detects changes.
create table documents (
    namespace integer not null references namespaces (id),
    path text not null,
    -- location of the folder that the first part of the path names
    folder text not null,
    digest bytea not null,
    read_at timestamptz not null,
    primary key (namespace, path)
);

-- Registered folders, whose Markdown files workers keep indexed. An export leaves them out: paths belong to a machine.
create table folders (
    namespace integer not null references namespaces (id),
    -- what the paths of its documents begin with
    name text not null,
    path text not null,
    -- when all of it was last read, and the error of the latest attempt, if any
    read_at timestamptz,
    error text,
    primary key (namespace, name)
);

create table lexemes (
    namespace integer not null references namespaces (id),
    lexeme text not null,
    facts integer not null,
    primary key (namespace, lexeme)
);

-- Live facts; whether they have ended is up to the query. The condition does not match the partial indexes of live
-- facts on purpose: without statistics the planner would read a whole one of them to find single facts. The row is cast
-- to `activity`, as it has another type on the nodes of Citus.
create view remembered as
select facts.namespace, id, kind, text, category, entity, key, value, importance, created_at, decay_class,
    case when held then 'infinity' else ends_at end as ends_at, pinned_until, decay_class_source, tags,
    row(activity.*)::activity as activity
from facts
join activity on activity.namespace = facts.namespace and activity.fact = facts.id
where coalesce(forgotten_at, superseded_at) is null;

-- Pairs of facts with one entity and key but different values; ignored unless both are live.
create table contradictions (
    namespace integer not null,
    fact uuid not null,
    other uuid not null check (fact < other),
    found_at timestamptz not null,
    -- when an owner accepted both
    accepted_at timestamptz,
    primary key (namespace, fact, other),
    foreign key (namespace, fact) references facts (namespace, id) on delete cascade,
    foreign key (namespace, other) references facts (namespace, id) on delete cascade
);

-- The two graphs: links between facts, which do not change, and relations between names of entities, which decay.
-- Supersession is stored in `superseded_by` and `supersedes_id` and needs no link.
create table links (
    namespace integer not null,
    id uuid not null default gen_random_uuid(),
    source uuid not null,
    target uuid not null check (source <> target),
    type text not null check (type in ('SUPERSEDES', 'UPDATES', 'CAUSED_BY', 'PART_OF', 'RELATED_TO', 'DEPENDS_ON')),
    strength double precision not null default 1 check (strength between 0 and 1),
    created_at timestamptz not null,
    primary key (namespace, source, target, type),
    foreign key (namespace, source) references facts (namespace, id) on delete cascade,
    foreign key (namespace, target) references facts (namespace, id) on delete cascade
);

create table relations (
    namespace integer not null references namespaces (id),
    id bigint generated always as identity,
    -- limited, as an index entry must fit a third of a page
    source text not null check (length(source) between 1 and 200),
    target text not null check (length(target) between 1 and 200),
    type text not null check (length(type) between 1 and 64),
    -- weight when it was last observed; later weights are computed from it
    initial_weight double precision not null default 1 check (initial_weight between 0 and 1),
    last_observed timestamptz not null,
    pinned boolean not null default false,
    -- as of the last pass or observation; not used by reads
    weight double precision not null check (weight between 0 and 1),
    created_at timestamptz not null,
    primary key (namespace, id),
    check (lower(source) <> lower(target))
);

-- The weight of a relation at an instant: it halves with every half-life, in days, without an observation. Limited, as
-- PostgreSQL raises an error on underflow.
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

-- In which other sessions, or at which other turn, a fact was said again.
create table occurrences (
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

-- By which texts a fact is known since near-duplicates were merged into it.
create table merged_texts (
    namespace integer not null,
    -- the digest of the text and case-sensitive words of a merged fact
    wording bytea not null,
    -- the live fact that it was merged into
    fact uuid not null,
    primary key (namespace, wording),
    foreign key (namespace, fact) references facts (namespace, id) on delete cascade
);

-- Pairs of near-duplicates; ignored unless both are live.
create table likenesses (
    namespace integer not null,
    fact uuid not null,
    other uuid not null check (fact < other),
    similarity double precision not null,
    found_at timestamptz not null,
    -- when a merged fact was restored, after which they are not merged again
    apart_at timestamptz,
    primary key (namespace, fact, other),
    foreign key (namespace, fact) references facts (namespace, id) on delete cascade,
    foreign key (namespace, other) references facts (namespace, id) on delete cascade
);

-- The decay rules by which all `due_at` and `ends_at` were computed; when they change, every fact is due.
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
    -- the minute of a scheduled pass, unique in case of several beats; null for a pass on request
    slot timestamptz,
    -- id of the task that waits for the result
    asked_by text not null,
    dry_run boolean not null default false,
    force boolean not null default false,
    -- restricts the run to one namespace
    namespace integer references namespaces (id),
    -- time of the previous finished pass; null for the first
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
    -- segments besides the first, of a part with few due facts in each
    further smallint[] not null default '{}',
    primary key (run, segment, part)
);

-- The last fact, in order of value and id, that a pass may forget in a namespace with more ended facts than the forget
-- limit allows, so that its tasks agree. `used` and `last_ends_at` belong to earlier versions.
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

-- Facts of a namespace that passes ended without (`facts`) and on (`asked`) their owners' request, by minute, for the
-- period of the forget limit. Without foreign key, as `tally_changes`.
create table endings (
    namespace integer not null,
    at timestamptz not null,
    facts bigint not null,
    asked bigint not null default 0,
    primary key (namespace, at)
);

-- The shares of a namespace that may end without request within a day and a week, as set by the latest worker or pass.
create table forget_limits (
    only_row boolean primary key default true check (only_row),
    a_day double precision not null default 0.2,
    a_week double precision not null default 0.5
);
insert into forget_limits default values;

-- The report of the janitor's last run in a namespace, including what passes did since the run before. It has the first
-- ids and the total numbers.
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

-- store: one live fact for each statement in a namespace, also with concurrent writers
create unique index facts_said_once on facts (namespace, hash)
    where forgotten_at is null and superseded_at is null;

-- recall, text arm: words, namespace and tags
create index facts_search on facts using gin (search) with (fastupdate = off);

-- recall, contiguity: the facts stored just before and after
create index facts_neighbours on facts (namespace, session, turn) where session is not null;

-- salience: facts without, from earlier versions and imports
create index facts_unestimated on facts (namespace, id) where content_salience is null;

-- documents: the chunks of a file, and whether a namespace has any
create index facts_chunks on facts (namespace, left(source, 200)) where kind = 'chunk';

-- items below a path; a single item is found by its hash
create index facts_items on facts (namespace, left(entity, 200) collate "C")
    where kind = 'item' and forgotten_at is null and superseded_at is null;

-- contradictions: live facts with the same entity and key, newest last. Only 200 characters of names, as an index entry
-- must fit a third of a page.
create index facts_topics
    on facts (namespace, left(folded(entity), 200), left(folded(key), 200), created_at)
    where entity is not null and forgotten_at is null and superseded_at is null;

-- lists: newest first; no other query has this condition, as without statistics the planner would read a whole namespace
-- by this index to find single facts
create index facts_newest on facts (namespace, created_at) where num_nonnulls(forgotten_at, superseded_at) = 0;

-- contradictions: foreign key of the second fact
create index contradictions_other on contradictions (namespace, other);

-- recall, entities named in the question: their facts, newest last
create index facts_entities on facts (namespace, left(folded(entity), 200), created_at)
    where entity is not null and forgotten_at is null and superseded_at is null;

-- recall: the strongest links from and to a fact; foreign keys
create index links_source on links (namespace, source, strength desc);
create index links_target on links (namespace, target, strength desc);

-- relations: unique, ignoring case
create unique index relations_once on relations (namespace, lower(source), lower(target), type);

-- recall: the relations from and to an entity
create index relations_source on relations (namespace, folded(source));
create index relations_target on relations (namespace, folded(target));

-- recall, vector arm: index-only scan of all signatures of a namespace
create index signatures_scan on signatures (namespace, live) include (fact, signature);

-- decay: due facts of a segment, oldest first
create index activity_due on activity (segment, due_at);

-- capacity: the least valuable live facts of a namespace
create index activity_by_value on activity (
    namespace, value_rank(worth, base, coactivations, last_seen_at, pinned_until, recall_count, confirmations)
) where not retired;

-- embed_pending: facts without a vector
create index activity_pending on activity (namespace, fact) where fidelity = 0;

-- consolidation: facts with a signature that were not compared yet
create index activity_uncompared on activity (namespace) where not compared and fidelity <> 0;

-- the facts of a session, and its last turn
create index occurrences_session on occurrences (namespace, session, turn);

-- texts of merged facts: foreign key, and a merge of what they were merged into
create index merged_texts_fact on merged_texts (namespace, fact);

-- near-duplicates: foreign key of the second fact
create index likenesses_other on likenesses (namespace, other);

-- held facts
create index activity_held on activity (namespace, fact) where held;

-- turn limit: persistent episodes by the turn when they were stored
create index activity_episodes on activity (namespace, occurred) where branch = 1 and outrun_at is null;

-- stats: pinned facts
create index activity_pinned on activity (namespace, pinned_until) where pinned_until is not null;

-- stats: changes of tallies
create index tally_changes_namespace on tally_changes (namespace);

-- janitor: facts that were culled, and episodes that became stale
create index facts_culled on facts (namespace, forgotten_at) where forgotten_reason in ('culled', 'aged');
create index events_stale on events (namespace, at) where what = 'stale';

-- review: facts that an LLM has pruned
create index events_pruned on events (namespace, at)
    where what = 'forgotten' and details ->> 'reason' = 'pruned';

-- forgotten: the tombstones of a namespace, newest first
create index facts_tombstones on facts (namespace, forgotten_at desc, id desc)
    where forgotten_at is not null;

-- purge: forgotten facts, oldest first
create index facts_forgotten on facts (forgotten_at) where forgotten_at is not null;

-- deep memory: a fact by its id; the hash takes half of the space
create index deep_facts on deep (namespace, uuid_hash(id));

-- purge: superseded facts, oldest first
create index facts_superseded on facts (superseded_at) where superseded_at is not null and forgotten_at is null;

-- deletion requests of a purged fact
create index forgotten_hashes_fact on forgotten_hashes (namespace, fact);

-- decay runs, newest first, and open ones
create index decay_runs_started on decay_runs (started_at desc);

-- the previous pass
create index decay_runs_passes on decay_runs (started_at desc)
    where finished_at is not null and not dry_run and work in ('decay', 'prune', 'hard prune', 'startup prune', 'janitor');

-- The forget limit --------------------------------------------------------------------------------------------------

-- The time of the last finished pass over a namespace, or over all if it is null.
create function last_pass(tenant integer) returns timestamptz
    language sql stable parallel safe set search_path from current as $$
    select planned_for from decay_runs
    where finished_at is not null and not dry_run
        and work in ('decay', 'prune', 'hard prune', 'startup prune', 'janitor')
        and (namespace is null or namespace = tenant)
    order by started_at desc
    limit 1
$$;

-- Whether a fact ends on its owner's request: an explicit lifetime expired not later than a day after the last pass, or
-- before the first pass. A lifetime includes the instant of its expiry.
create or replace function asked_for(
    decay_class_source text, expires_at timestamptz, passed_at timestamptz, instant timestamptz
) returns boolean
    language sql immutable parallel safe
return coalesce(decay_class_source = 'explicit', false)
    and expires_at < instant and expires_at <= coalesce(passed_at + interval '1 day', 'infinity');

-- The rest of a share of `lived` facts after some of them ended; the share is at least five facts, unless it is 0.
create function share_left(share double precision, lived numeric, ended numeric) returns bigint
    language sql immutable parallel safe
return case
    when share <= 0 then 0
    else greatest(greatest(floor(share * lived), 5) - ended, 0)
end;

-- How many more facts of a namespace may end without request at an instant, see `core.forget_limit`; null without
-- limit.
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

-- The basis for predicting what the next pass over a namespace will hold: facts that ended within the gap, and those of
-- at least this value rank, unless their owners requested the end (`asked_for` with `passed_at`).
create type outlook as (
    gap_from timestamptz, gap_until timestamptz, passed_at timestamptz, value_rank double precision, fact uuid
);

-- The outlook of a namespace at an instant. A gap is either unconfirmed, or one that the next pass will find, see
-- `core.forget_limit`. Facts are due a moment after their end, so this reads the due facts of each segment. Statements
-- call it in an uncorrelated subquery, which runs once, and only if they find an ended fact.
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

-- Whether a pass at an instant would hold an ended fact. A function that takes rows of `activity` must not call another one that
-- does: on a new node, Citus would then make the table twice, and the second time drop the function that is called.
create function stays(
    ends_at timestamptz, retired boolean, held boolean, rank double precision, fact uuid, source text,
    expires_at timestamptz, next outlook, instant timestamptz
) returns boolean
    language sql immutable parallel safe
return ends_at <= instant and not retired and (
    coalesce(ends_at > (next).gap_from and ends_at <= (next).gap_until, false)
    or (held or coalesce((rank, fact) >= ((next).value_rank, (next).fact), false))
        and not asked_for(source, expires_at, (next).passed_at, instant)
);

-- Whether an ended fact is held at an instant, whether or not a pass has run. Written so that the outlook is computed
-- only if a pass would take the fact.
create function is_held(one activity, next outlook, instant timestamptz) returns boolean
    language sql immutable parallel safe
return (one).held and (one).due_at > instant or stays(
    (one).ends_at, (one).retired, (one).held, value_rank(
        (one).worth, (one).base, (one).coactivations, (one).last_seen_at, (one).pinned_until, (one).recall_count,
        (one).confirmations
    ), (one).fact, (one).decay_class_source, (one).expires_at, next, instant
);

-- Whether a fact has ended and is not held, so that reads hide it.
create function has_ended(one activity, next outlook, instant timestamptz) returns boolean
    language sql immutable parallel safe
return is_over((one).ends_at, (one).held and (one).due_at > instant or stays(
    (one).ends_at, (one).retired, (one).held, value_rank(
        (one).worth, (one).base, (one).coactivations, (one).last_seen_at, (one).pinned_until, (one).recall_count,
        (one).confirmations
    ), (one).fact, (one).decay_class_source, (one).expires_at, next, instant
), instant);

-- Triggers ----------------------------------------------------------------------------------------------------------

-- They read the changes into a variable first, as Citus does not know transition tables when it plans the insert.

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
-- For each row, as the foreign key deletes row by row; purged facts are retired already.
create trigger tally_deleted after delete on activity
    for each row when (not old.retired) execute function tally_activity_deleted();

-- For each row, as few added facts are tombstones and a transition table of all new rows would be large.
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

-- Facts in deep memory are counted by reason, apart from tombstones; the numbers are those of `storage.packing`.
create function deep_reason(body bytea) returns text
    language sql immutable parallel safe
return 'deep ' || (array['expired', 'faded', 'culled', 'aged', 'merged', 'pruned', 'crowded'])[1 + get_byte(body, 8)];

create function tally_deep_added() returns trigger
    language plpgsql set search_path from current as $$
declare
    changes tally_changes[] := array(
        select row(namespace, null, null, null, null, null, null, null, deep_reason(body), count(*))::tally_changes
        from new_rows group by namespace, deep_reason(body)
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
        select row(namespace, null, null, null, null, null, null, null, deep_reason(body), -count(*))::tally_changes
        from old_rows group by namespace, deep_reason(body)
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
