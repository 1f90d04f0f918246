--
-- PostgreSQL database dump
--


-- Dumped from database version 18.4
-- Dumped by pg_dump version 18.4

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: vector; Type: EXTENSION; Schema: -; Owner: -
--

CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;


--
-- Name: EXTENSION vector; Type: COMMENT; Schema: -; Owner: -
--

COMMENT ON EXTENSION vector IS 'vector data type and ivfflat and hnsw access methods';


--
-- Name: ebb_written; Type: TEXT SEARCH DICTIONARY; Schema: public; Owner: -
--

CREATE TEXT SEARCH DICTIONARY public.ebb_written (
    TEMPLATE = pg_catalog.simple,
    stopwords = 'english' );


--
-- Name: ebb_written; Type: TEXT SEARCH CONFIGURATION; Schema: public; Owner: -
--

CREATE TEXT SEARCH CONFIGURATION public.ebb_written (
    PARSER = pg_catalog."default" );

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR asciiword WITH public.ebb_written;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR word WITH public.ebb_written;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR numword WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR email WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR url WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR host WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR sfloat WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR version WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR hword_numpart WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR hword_part WITH public.ebb_written;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR hword_asciipart WITH public.ebb_written;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR numhword WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR asciihword WITH public.ebb_written;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR hword WITH public.ebb_written;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR url_path WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR file WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR "float" WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR "int" WITH simple;

ALTER TEXT SEARCH CONFIGURATION public.ebb_written
    ADD MAPPING FOR uint WITH simple;


--
-- Name: as_written(text, tsvector); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.as_written(readable text, stems tsvector) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ts_delete(CASE WHEN (octet_length(readable) = length(readable)) THEN to_tsvector('public.ebb_written'::regconfig, readable) ELSE (NORMALIZE(regexp_replace(NORMALIZE((to_tsvector('public.ebb_written'::regconfig, readable))::text, NFKD), '[\u0300-\u036f]'::text, ''::text, 'g'::text), NFC))::tsvector END, tsvector_to_array(stems));


--
-- Name: unspaced(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.unspaced() RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN '\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff'::text;


--
-- Name: in_pairs(text); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.in_pairs(body text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (SELECT (regexp_replace(in_pairs.body, (('(['::text || public.unspaced()) || '])'::text), ' \1 '::text, 'g'::text) || regexp_replace(regexp_replace(((runs.runs || ' '::text) || regexp_replace(runs.runs, '(\A| ).'::text, ' '::text, 'g'::text)), '([^ ])([^ ])'::text, ' \1\2 '::text, 'g'::text), '(\A| )[^ ](?= |\Z)'::text, ' '::text, 'g'::text)) FROM regexp_replace(in_pairs.body, (('[^'::text || public.unspaced()) || ']+'::text), ' '::text, 'g'::text) runs(runs));


--
-- Name: note_erasures(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.note_erasures() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into erasures (namespace) select distinct namespace from old_rows;
    return null;
end
$$;


--
-- Name: pass_takes(text, double precision, double precision, double precision); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.pass_takes(work text, confirmed_at double precision, expires_at double precision, instant double precision) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((work = ANY (ARRAY['decay'::text, 'janitor'::text])) OR ((work = ANY (ARRAY['prune'::text, 'hard prune'::text, 'startup prune'::text])) AND (expires_at < instant)) OR ((work = ANY (ARRAY['prune'::text, 'soft prune'::text])) AND (expires_at > instant) AND ((confirmed_at + ((expires_at - confirmed_at) * (0.75)::double precision)) < instant)));


--
-- Name: readable(text); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.readable(body text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN (octet_length(body) = length(body)) THEN replace(replace(replace("left"(body, 65536), '.'::text, ' '::text), '/'::text, ' '::text), '-'::text, ' '::text) ELSE public.in_pairs(translate(NORMALIZE("left"(body, 65536), NFKC), './-'::text, '   '::text)) END;


--
-- Name: relation_weight(double precision, timestamp with time zone, boolean, timestamp with time zone, double precision); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.relation_weight(initial_weight double precision, last_observed timestamp with time zone, pinned boolean, instant timestamp with time zone, half_life double precision) RETURNS double precision
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN CASE WHEN pinned THEN initial_weight WHEN (initial_weight < (0.0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001)::double precision) THEN (0)::double precision ELSE (initial_weight * power((0.5)::double precision, LEAST(GREATEST(((date_part('epoch'::text, (instant - last_observed)) / (86400)::double precision) / half_life), (0)::double precision), (500)::double precision))) END;


--
-- Name: search_lexemes(integer, text, text, text, text, text, text[]); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.search_lexemes(namespace integer, body text, category text, entity text, key text, value text, tags text[]) RETURNS tsvector
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
declare
    named tsvector := '';
    labels constant text[] := array['namespace ' || namespace] || array(select 'tag ' || tag from unnest(tags) as tag);
begin
    if coalesce(category, entity, key, value) is not null then
        named := public.words(concat_ws(' ', category, entity, key, value));
    end if;
    return named || named || public.words(body) || array_to_tsvector(labels);
end $$;


--
-- Name: stemmed(text); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.stemmed(body text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN to_tsvector('english'::regconfig, body);


--
-- Name: tally_activity_added(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.tally_activity_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into tally_changes (namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, facts)
    select namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, count(*)
    from new_rows
    where not retired
    group by 1, 2, 3, 4, 5, 6, 7, 8;
    return null;
end
$$;


--
-- Name: tally_activity_changed(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.tally_activity_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into tally_changes (namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, facts)
    select namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, sum(change)
    from (
        select namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, 1 as change
        from new_rows where not retired
        union all
        select namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, -1
        from old_rows where not retired
    ) as changes
    group by 1, 2, 3, 4, 5, 6, 7, 8
    having sum(change) <> 0;
    return null;
end
$$;


--
-- Name: tally_activity_deleted(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.tally_activity_deleted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into tally_changes (namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, facts)
    values (old.namespace, old.decay_class, old.decay_class_source, old.tier, old.fidelity, old.branch,
        old.held, old.stale, -1);
    return null;
end
$$;


--
-- Name: tally_tombstone_added(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.tally_tombstone_added() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into tally_changes (namespace, forgotten_reason, facts) values (new.namespace, new.forgotten_reason, 1);
    return null;
end
$$;


--
-- Name: tally_tombstones_changed(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.tally_tombstones_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into tally_changes (namespace, forgotten_reason, facts)
    select namespace, forgotten_reason, sum(change)
    from (
        select namespace, forgotten_reason, 1 as change from new_rows
        where forgotten_reason is not null and superseded_at is null
        union all
        select namespace, forgotten_reason, -1 from old_rows
        where forgotten_reason is not null and superseded_at is null
    ) as changes
    group by 1, 2
    having sum(change) <> 0;
    return null;
end
$$;


--
-- Name: tally_tombstones_deleted(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.tally_tombstones_deleted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into tally_changes (namespace, forgotten_reason, facts)
    select namespace, forgotten_reason, -count(*)
    from old_rows
    where forgotten_reason is not null and superseded_at is null
    group by 1, 2;
    return null;
end
$$;


--
-- Name: words(text); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.words(body text) RETURNS tsvector
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
declare
    plain constant text := public.readable(body);
    stems constant tsvector := public.stemmed(plain);
begin
    return stems || public.as_written(plain, stems);
end $$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: activity; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.activity (
    namespace integer NOT NULL,
    fact uuid NOT NULL,
    segment smallint NOT NULL,
    branch smallint DEFAULT 0 NOT NULL,
    base double precision NOT NULL,
    coactivations integer DEFAULT 0 NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    confidence double precision DEFAULT 1 NOT NULL,
    last_confirmed_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    decay_class text,
    decay_class_source text,
    halvings smallint DEFAULT 0 NOT NULL,
    recall_count integer DEFAULT 0 NOT NULL,
    last_accessed_at timestamp with time zone,
    spells bytea,
    confirmations integer DEFAULT 0 NOT NULL,
    compared boolean DEFAULT false NOT NULL,
    tier smallint NOT NULL,
    fidelity smallint NOT NULL,
    ends_at timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
    held boolean DEFAULT false NOT NULL,
    stale boolean DEFAULT false NOT NULL,
    retired boolean DEFAULT false NOT NULL,
    due_at timestamp with time zone NOT NULL,
    pinned_until timestamp with time zone,
    kept_lifetime double precision,
    encoded_at timestamp with time zone,
    occurred bigint,
    outrun_at timestamp with time zone,
    CONSTRAINT activity_branch_check CHECK (((branch >= 0) AND (branch <= 3))),
    CONSTRAINT activity_check CHECK (((decay_class IS NULL) = (decay_class_source IS NULL))),
    CONSTRAINT activity_decay_class_source_check CHECK ((decay_class_source = ANY (ARRAY['auto'::text, 'explicit'::text]))),
    CONSTRAINT activity_spells_check CHECK ((length(spells) <= 176))
)
WITH (fillfactor='75');


--
-- Name: anchors; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.anchors AS
 SELECT namespace,
    fact,
    segment,
    base,
    coactivations,
    date_part('epoch'::text, last_seen_at) AS last_seen_at,
    confidence,
    date_part('epoch'::text, last_confirmed_at) AS confirmed_at,
    date_part('epoch'::text, expires_at) AS expires_at,
    COALESCE(decay_class, ''::text) AS decay_class,
    tier,
    fidelity,
    COALESCE(date_part('epoch'::text, last_accessed_at), '-Infinity'::double precision) AS last_accessed_at,
    held,
    due_at,
    ends_at,
    COALESCE(date_part('epoch'::text, pinned_until), '-Infinity'::double precision) AS pinned_until,
    halvings,
    decay_class_source,
    branch,
    COALESCE(date_part('epoch'::text, encoded_at), '-Infinity'::double precision) AS encoded_at,
    COALESCE(occurred, (0)::bigint) AS occurred,
    COALESCE(date_part('epoch'::text, outrun_at), 'Infinity'::double precision) AS outrun_at,
    outrun_at AS outrun_since,
    stale,
    retired
   FROM public.activity;


--
-- Name: api_keys; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.api_keys (
    namespace integer NOT NULL,
    id uuid NOT NULL,
    digest bytea NOT NULL,
    label text,
    scopes text[] NOT NULL,
    created_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    CONSTRAINT api_keys_scopes_check CHECK (((scopes <@ '{read,write,admin,system}'::text[]) AND (scopes <> '{}'::text[])))
);


--
-- Name: contradictions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.contradictions (
    namespace integer NOT NULL,
    fact uuid NOT NULL,
    other uuid NOT NULL,
    found_at timestamp with time zone NOT NULL,
    accepted_at timestamp with time zone,
    CONSTRAINT contradictions_check CHECK ((fact < other))
);


--
-- Name: decay_allowances; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.decay_allowances (
    run uuid NOT NULL,
    namespace integer NOT NULL,
    allowed bigint NOT NULL,
    used bigint DEFAULT 0 NOT NULL
);


--
-- Name: decay_parts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.decay_parts (
    run uuid NOT NULL,
    segment smallint NOT NULL,
    part smallint NOT NULL,
    quota bigint NOT NULL,
    done_at timestamp with time zone,
    processed bigint DEFAULT 0 NOT NULL,
    changed bigint DEFAULT 0 NOT NULL,
    hot bigint DEFAULT 0 NOT NULL,
    warm bigint DEFAULT 0 NOT NULL,
    cold bigint DEFAULT 0 NOT NULL,
    compressed bigint DEFAULT 0 NOT NULL,
    fingerprinted bigint DEFAULT 0 NOT NULL,
    expired bigint DEFAULT 0 NOT NULL,
    faded bigint DEFAULT 0 NOT NULL,
    culled bigint DEFAULT 0 NOT NULL,
    aged bigint DEFAULT 0 NOT NULL,
    stale bigint DEFAULT 0 NOT NULL,
    decayed bigint DEFAULT 0 NOT NULL,
    held bigint DEFAULT 0 NOT NULL,
    duration_ms double precision DEFAULT 0 NOT NULL
);


--
-- Name: decay_runs; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.decay_runs (
    id uuid NOT NULL,
    work text DEFAULT 'decay'::text NOT NULL,
    planned_for timestamp with time zone NOT NULL,
    started_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    finished_at timestamp with time zone,
    slot timestamp with time zone,
    asked_by text NOT NULL,
    dry_run boolean DEFAULT false NOT NULL,
    force boolean DEFAULT false NOT NULL,
    namespace integer,
    CONSTRAINT decay_runs_work_check CHECK ((work = ANY (ARRAY['decay'::text, 'prune'::text, 'hard prune'::text, 'soft prune'::text, 'startup prune'::text, 'review'::text, 'consolidation'::text, 'janitor'::text])))
);


--
-- Name: documents; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.documents (
    namespace integer NOT NULL,
    path text NOT NULL,
    folder text NOT NULL,
    digest bytea NOT NULL,
    read_at timestamp with time zone NOT NULL
);


--
-- Name: embedders; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.embedders (
    only_row boolean DEFAULT true NOT NULL,
    name text NOT NULL,
    dims integer NOT NULL,
    signature_seed bigint NOT NULL,
    CONSTRAINT embedders_only_row_check CHECK (only_row)
);


--
-- Name: erasures; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.erasures (
    id bigint NOT NULL,
    namespace integer NOT NULL
);


--
-- Name: erasures_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.erasures ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.erasures_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: events; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.events (
    namespace integer NOT NULL,
    fact uuid NOT NULL,
    id bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    what text NOT NULL,
    details jsonb DEFAULT '{}'::jsonb NOT NULL
);


--
-- Name: events_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: facts; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.facts (
    namespace integer NOT NULL,
    id uuid NOT NULL,
    kind text DEFAULT 'semantic'::text NOT NULL,
    text text NOT NULL,
    hash bytea NOT NULL,
    summary text,
    category text,
    entity text,
    key text,
    value text,
    source text,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    importance double precision DEFAULT 0.5 NOT NULL,
    metadata json,
    session jsonb,
    turn integer,
    source_date timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    valid_from timestamp with time zone NOT NULL,
    valid_until timestamp with time zone,
    superseded_at timestamp with time zone,
    superseded_by uuid,
    supersedes_id uuid,
    forgotten_at timestamp with time zone,
    forgotten_reason text,
    search tsvector GENERATED ALWAYS AS (public.search_lexemes(namespace, text, category, entity, key, value, tags)) STORED NOT NULL,
    CONSTRAINT facts_forgotten_reason_check CHECK ((forgotten_reason = ANY (ARRAY['expired'::text, 'faded'::text, 'culled'::text, 'aged'::text, 'asked'::text, 'retracted'::text, 'merged'::text, 'pruned'::text]))),
    CONSTRAINT facts_importance_check CHECK (((importance >= (0)::double precision) AND (importance <= (1)::double precision))),
    CONSTRAINT facts_kind_check CHECK ((kind = ANY (ARRAY['semantic'::text, 'episodic'::text, 'chunk'::text, 'item'::text]))),
    CONSTRAINT facts_session_check CHECK ((jsonb_typeof(session) = ANY (ARRAY['string'::text, 'number'::text])))
);


--
-- Name: fading_rules; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.fading_rules (
    only_row boolean DEFAULT true NOT NULL,
    rules jsonb NOT NULL,
    CONSTRAINT fading_rules_only_row_check CHECK (only_row)
);


--
-- Name: forgotten_hashes; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.forgotten_hashes (
    namespace integer NOT NULL,
    digest bytea NOT NULL,
    fact uuid NOT NULL,
    forgotten_at timestamp with time zone NOT NULL,
    reason text NOT NULL
);


--
-- Name: janitors; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.janitors (
    namespace integer NOT NULL,
    run uuid NOT NULL,
    last_run_turn bigint NOT NULL,
    last_run_at timestamp with time zone NOT NULL,
    total_runs bigint NOT NULL,
    culled_facts bigint NOT NULL,
    culled_fact_ids uuid[] NOT NULL,
    culled_episodes bigint NOT NULL,
    culled_episode_ids uuid[] NOT NULL,
    stale_episodes bigint NOT NULL,
    stale_episode_ids uuid[] NOT NULL
);


--
-- Name: languages; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.languages (
    only_row boolean DEFAULT true NOT NULL,
    name text NOT NULL,
    CONSTRAINT languages_only_row_check CHECK (only_row)
);


--
-- Name: lexemes; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.lexemes (
    namespace integer NOT NULL,
    lexeme text NOT NULL,
    facts integer NOT NULL
);


--
-- Name: likenesses; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.likenesses (
    namespace integer NOT NULL,
    fact uuid NOT NULL,
    other uuid NOT NULL,
    similarity double precision NOT NULL,
    found_at timestamp with time zone NOT NULL,
    apart_at timestamp with time zone,
    CONSTRAINT likenesses_check CHECK ((fact < other))
);


--
-- Name: links; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.links (
    namespace integer NOT NULL,
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    source uuid NOT NULL,
    target uuid NOT NULL,
    type text NOT NULL,
    strength double precision DEFAULT 1 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT links_check CHECK ((source <> target)),
    CONSTRAINT links_strength_check CHECK (((strength >= (0)::double precision) AND (strength <= (1)::double precision))),
    CONSTRAINT links_type_check CHECK ((type = ANY (ARRAY['SUPERSEDES'::text, 'CAUSED_BY'::text, 'PART_OF'::text, 'RELATED_TO'::text, 'DEPENDS_ON'::text])))
);


--
-- Name: namespaces; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.namespaces (
    id integer NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    counted_facts bigint DEFAULT 0 NOT NULL,
    counted_words bigint DEFAULT 0 NOT NULL,
    counted_at timestamp with time zone,
    held_since timestamp with time zone,
    salt uuid DEFAULT gen_random_uuid() NOT NULL,
    turns bigint DEFAULT 0 NOT NULL,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    chosen_at timestamp with time zone,
    settings_changed_at timestamp with time zone,
    due_noted bigint DEFAULT 0 NOT NULL
);


--
-- Name: namespaces_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.namespaces ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.namespaces_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: relations; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.relations (
    namespace integer NOT NULL,
    id bigint NOT NULL,
    source text NOT NULL,
    target text NOT NULL,
    type text NOT NULL,
    initial_weight double precision DEFAULT 1 NOT NULL,
    last_observed timestamp with time zone NOT NULL,
    pinned boolean DEFAULT false NOT NULL,
    weight double precision NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT relations_check CHECK ((lower(source) <> lower(target))),
    CONSTRAINT relations_initial_weight_check CHECK (((initial_weight >= (0)::double precision) AND (initial_weight <= (1)::double precision))),
    CONSTRAINT relations_source_check CHECK (((length(source) >= 1) AND (length(source) <= 200))),
    CONSTRAINT relations_target_check CHECK (((length(target) >= 1) AND (length(target) <= 200))),
    CONSTRAINT relations_type_check CHECK (((length(type) >= 1) AND (length(type) <= 64))),
    CONSTRAINT relations_weight_check CHECK (((weight >= (0)::double precision) AND (weight <= (1)::double precision)))
);


--
-- Name: relations_id_seq; Type: SEQUENCE; Schema: public; Owner: -
--

ALTER TABLE public.relations ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.relations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: remembered; Type: VIEW; Schema: public; Owner: -
--

CREATE VIEW public.remembered AS
 SELECT facts.namespace,
    facts.id,
    facts.kind,
    facts.text,
    facts.category,
    facts.entity,
    facts.key,
    facts.value,
    facts.importance,
    facts.created_at,
    activity.decay_class,
        CASE
            WHEN activity.held THEN 'infinity'::timestamp with time zone
            ELSE activity.ends_at
        END AS ends_at,
    activity.pinned_until
   FROM (public.facts
     JOIN public.activity ON (((activity.namespace = facts.namespace) AND (activity.fact = facts.id))))
  WHERE (COALESCE(facts.forgotten_at, facts.superseded_at) IS NULL);


--
-- Name: schema_version; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.schema_version (
    version integer NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: signatures; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.signatures (
    namespace integer NOT NULL,
    fact uuid NOT NULL,
    live boolean DEFAULT true NOT NULL,
    signature bit(1024) NOT NULL
);


--
-- Name: system_history; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.system_history (
    at timestamp with time zone NOT NULL,
    waiting jsonb NOT NULL,
    writes bigint[] NOT NULL
);


--
-- Name: tallies; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.tallies (
    namespace integer NOT NULL,
    decay_class text,
    decay_class_source text,
    tier smallint,
    fidelity smallint,
    branch smallint,
    held boolean,
    stale boolean,
    forgotten_reason text,
    facts bigint NOT NULL
);


--
-- Name: tally_changes; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.tally_changes (
    namespace integer CONSTRAINT tallies_namespace_not_null NOT NULL,
    decay_class text,
    decay_class_source text,
    tier smallint,
    fidelity smallint,
    branch smallint,
    held boolean,
    stale boolean,
    forgotten_reason text,
    facts bigint CONSTRAINT tallies_facts_not_null NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000');


--
-- Name: tally_history; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.tally_history (
    namespace integer NOT NULL,
    at timestamp with time zone NOT NULL,
    counts jsonb NOT NULL
);


--
-- Name: vectors; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.vectors (
    namespace integer NOT NULL,
    fact uuid NOT NULL,
    full_dims smallint NOT NULL,
    embedding public.halfvec NOT NULL
);
ALTER TABLE ONLY public.vectors ALTER COLUMN embedding SET STORAGE MAIN;


--
-- Data for Name: activity; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.activity VALUES
	(1, '01a20423-b393-7734-88a0-f1d1303cecf9', 55, 0, 0.5, 0, '2025-01-01 00:00:00+00', 1, '2025-01-01 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 1, 32767, '2026-08-21 22:43:45.731688+00', false, false, true, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(1, '01a20423-b355-7068-9994-4457ec34239c', 16, 0, 0.5, 0, '2025-01-01 00:00:00+00', 1, '2025-01-01 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 1, 1, 'infinity', false, false, false, 'infinity', 'infinity', NULL, NULL, NULL, NULL),
	(1, '01a20423-b369-71e0-85ff-3c83747d00a6', 59, 0, 0.5, 0, '2025-01-01 00:00:00+00', 1, '2025-01-01 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 1, 32767, '2026-08-21 22:43:45.731688+00', false, false, true, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(2, '01a20423-b49e-72cd-8ae0-844f42bc7544', 8, 0, 0.5, 0, '2025-01-01 00:00:00+00', 1, '2025-01-01 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 1, 32767, '2026-08-21 22:43:45.731688+00', false, false, true, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(2, '01a20423-b47e-7744-9419-6f466deb8a0d', 7, 0, 0.5, 0, '2025-01-01 00:00:00+00', 1, '2025-01-01 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 1, 32767, '2026-08-21 22:43:45.731688+00', false, false, true, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(1, '01a20423-b3d0-74ed-9cc0-b4ba068b9b5d', 39, 0, 0.5, 0, '2025-01-02 00:00:00+00', 1, '2025-01-02 00:00:00+00', '2025-01-03 00:00:00+00', 'session', 'auto', 4, 0, NULL, NULL, 0, true, 2, 32767, '2025-01-02 21:00:00+00', false, false, true, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(1, '01a20423-b3bd-74c6-90e6-4d09d09f8cae', 3, 0, 0.5, 0, '2025-01-01 00:00:00+00', 1, '2025-01-01 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2026-08-21 22:43:45.731688+00', false, false, false, '2026-08-21 22:43:45.732688+00', NULL, NULL, NULL, NULL, NULL),
	(1, '01a20423-b37e-7280-95cd-c77652a2bb35', 17, 0, 0.5, 0, '2025-01-01 00:00:00+00', 1, '2025-01-01 00:00:00+00', '2025-01-01 04:00:00+00', 'checkpoint', 'explicit', 1, 0, NULL, NULL, 0, true, 2, 32767, '2025-01-01 04:00:00+00', false, false, true, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(1, '01a20423-b3e5-7604-b7a2-10854fa83936', 34, 2, 0.5, 0, '2025-01-02 00:00:00+00', 1, '2025-01-02 00:00:00+00', 'infinity', 'permanent', 'explicit', 0, 0, NULL, NULL, 0, true, 2, 1, 'infinity', false, false, false, '2025-07-01 00:00:00.001001+00', NULL, NULL, '2025-01-02 00:00:00+00', 4, NULL),
	(2, '01a20423-b48f-77ef-8f4a-f76ee45c2129', 49, 0, 0.5, 0, '2025-01-01 00:00:00+00', 1, '2025-01-01 00:00:00+00', '2025-01-01 04:00:00+00', 'checkpoint', 'explicit', 1, 0, NULL, NULL, 0, true, 2, 32767, '2025-01-01 04:00:00+00', false, false, true, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(1, '01a20423-b3b0-7245-ba77-29c6025063e7', 33, 0, 0.5, 0, '2025-01-04 00:00:00+00', 1, '2025-01-04 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2026-08-24 22:43:45.731688+00', false, false, false, '2026-08-24 22:43:45.732688+00', NULL, NULL, NULL, NULL, NULL),
	(1, '01a20423-b427-77d0-993d-550e1402269c', 7, 0, 0.5, 0, '2025-01-04 00:00:00+00', 1, '2025-01-04 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2026-08-24 22:43:45.731688+00', false, false, false, '2026-08-24 22:43:45.732688+00', NULL, NULL, NULL, NULL, NULL),
	(1, 'ecdd991c-3be5-50b8-a9ed-69d0f2cf272c', 10, 3, 0.5, 0, '2025-01-04 00:00:00+00', 1, '2025-01-04 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, 'infinity', false, false, false, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(1, '01a20423-b3da-70de-9256-5e2cc1dc985f', 11, 1, 0.5, 0, '2025-01-02 00:00:00+00', 1, '2025-01-02 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2025-04-02 00:00:00.000001+00', false, false, false, '2025-04-02 00:00:00.001001+00', NULL, NULL, '2025-01-02 00:00:00+00', 3, NULL),
	(1, '517aedb1-0bd0-5caf-972b-9f41393af19a', 19, 3, 0.5, 0, '2025-01-04 00:00:00+00', 1, '2025-01-04 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, 'infinity', false, false, false, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(1, '01a20423-b415-7065-a9d0-e40e4f2c28dc', 28, 0, 0.5, 0, '2025-01-04 00:00:00+00', 1, '2025-01-04 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2026-08-24 22:43:45.731688+00', false, false, false, '2026-08-24 22:43:45.732688+00', NULL, NULL, NULL, NULL, NULL),
	(2, '01a20423-b4cd-7504-b91d-9245a12c9f58', 40, 0, 0.5, 0, '2025-01-02 00:00:00+00', 1, '2025-01-02 00:00:00+00', '2025-01-16 00:00:00+00', 'active', 'auto', 4, 0, NULL, NULL, 0, true, 2, 32767, '2025-01-12 15:00:00+00', false, false, true, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(1, '01a20423-b3c7-7342-a326-503a13aef56d', 50, 0, 0.5, 0, '2025-01-02 00:00:00+00', 1, '2025-01-02 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2026-08-22 22:43:45.731688+00', false, false, false, '2026-08-22 22:43:45.732688+00', NULL, NULL, NULL, NULL, NULL),
	(1, '01a20423-b39f-77b8-a489-e2528710a51e', 58, 0, 0.5, 0, '2025-01-03 00:00:00+00', 1, '2025-01-03 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2026-08-23 22:43:45.731688+00', false, false, false, '2026-08-23 22:43:45.732688+00', NULL, NULL, NULL, NULL, NULL),
	(1, '01a20423-b3d0-74ed-9cc0-b4b980676286', 60, 0, 0.5, 0, '2025-01-02 00:00:00+00', 1, '2025-01-02 00:00:00+00', '2025-01-16 00:00:00+00', 'active', 'auto', 4, 0, NULL, NULL, 0, true, 2, 32767, '2025-01-12 15:00:00+00', false, false, true, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(2, '01a20423-b4a8-700c-8b76-652b77a9b2e2', 15, 0, 0.5, 0, '2025-01-03 00:00:00+00', 1, '2025-01-03 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2028-04-29 12:05:24.400368+00', false, false, false, '2028-04-29 12:05:24.401368+00', NULL, NULL, NULL, NULL, NULL),
	(2, '01a20423-b4b3-71f7-802a-a8805c413ff8', 26, 0, 0.5, 0, '2025-01-04 00:00:00+00', 1, '2025-01-04 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2028-04-30 12:05:24.400368+00', false, false, false, '2028-04-30 12:05:24.401368+00', NULL, NULL, NULL, NULL, NULL),
	(2, '01a20423-b472-735f-bab8-f863f567406b', 33, 0, 0.5, 0, '2025-01-01 00:00:00+00', 1, '2025-01-01 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 1, 1, 'infinity', false, false, false, 'infinity', 'infinity', NULL, NULL, NULL, NULL),
	(2, '01a20423-b497-740a-bb36-8ff57457e08b', 35, 0, 0.5, 0, '2025-01-01 00:00:00+00', 0.12, '2025-01-01 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2025-04-07 00:10:53.022374+00', false, false, false, '2025-04-07 00:10:53.023374+00', NULL, NULL, NULL, NULL, NULL),
	(2, '01a20423-b4bd-72fc-87c9-2fd3b08d7f39', 45, 0, 0.5, 0, '2025-01-01 00:00:00+00', 1, '2025-01-01 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2028-04-27 12:05:24.400368+00', false, false, false, '2028-04-27 12:05:24.401368+00', NULL, NULL, NULL, NULL, NULL),
	(1, '01a20423-b389-767f-be5c-542778bdb4ff', 39, 0, 0.5, 0, '2025-01-01 00:00:00+00', 0.12, '2025-01-01 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2025-02-17 08:18:31.079527+00', false, false, true, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(1, '01a20423-b2ff-711a-a77d-aee338569bba', 40, 0, 0.5537537848371822, 1, '2025-01-05 00:00:00+00', 1, '2025-01-05 00:00:00+00', 'infinity', NULL, NULL, 0, 1, '2025-01-05 00:00:00+00', '\x6774858067748580800000', 0, true, 2, 4, '2026-08-25 22:43:45.731688+00', false, false, false, '2025-03-05 18:48:48.083276+00', NULL, NULL, NULL, NULL, NULL),
	(2, '01a20423-b465-7015-9454-f7f09a8b6649', 48, 0, 0.5537537848371822, 1, '2025-01-05 00:00:00+00', 1, '2025-01-05 00:00:00+00', 'infinity', NULL, NULL, 0, 1, '2025-01-05 00:00:00+00', '\x6774858067748580800000', 0, true, 2, 4, '2028-05-01 12:05:24.400368+00', false, false, false, '2025-03-05 18:48:48.083276+00', NULL, NULL, NULL, NULL, NULL),
	(2, '01a20423-b4c5-7569-8a8c-fc024f869e69', 61, 0, 0.5, 0, '2025-01-02 00:00:00+00', 1, '2025-01-02 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2028-04-28 12:05:24.400368+00', false, false, false, '2028-04-28 12:05:24.401368+00', NULL, NULL, NULL, NULL, NULL),
	(2, '01a20423-b4cd-7504-b91d-924671e4e7b4', 52, 0, 0.5, 0, '2025-01-02 00:00:00+00', 1, '2025-01-02 00:00:00+00', '2025-01-03 00:00:00+00', 'session', 'auto', 4, 0, NULL, NULL, 0, true, 2, 32767, '2025-01-02 21:00:00+00', false, false, true, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(2, '01a20423-b4e6-7493-b244-3610defe9da3', 1, 1, 0.5, 0, '2025-01-02 00:00:00+00', 1, '2025-01-02 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2025-04-02 00:00:00.000001+00', false, false, false, '2025-04-02 00:00:00.001001+00', NULL, NULL, '2025-01-02 00:00:00+00', 3, NULL),
	(2, '0fb44077-3445-5b6f-ae46-53e65ea6578c', 23, 3, 0.5, 0, '2025-01-04 00:00:00+00', 1, '2025-01-04 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, 'infinity', false, false, false, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(2, '01a20423-b4f9-7259-8076-959661fe4c4a', 26, 2, 0.5, 0, '2025-01-02 00:00:00+00', 1, '2025-01-02 00:00:00+00', 'infinity', 'permanent', 'explicit', 0, 0, NULL, NULL, 0, true, 2, 1, 'infinity', false, false, false, '2025-07-01 00:00:00.001001+00', NULL, NULL, '2025-01-02 00:00:00+00', 4, NULL),
	(2, 'cad2426f-1441-5df4-ac49-d1bd05f412a3', 35, 3, 0.5, 0, '2025-01-04 00:00:00+00', 1, '2025-01-04 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, 'infinity', false, false, false, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(2, '01a20423-b519-72e8-9fcc-2559a23eb59e', 11, 0, 0.5, 0, '2025-01-04 00:00:00+00', 1, '2025-01-04 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2028-04-30 12:05:24.400368+00', false, false, false, '2028-04-30 12:05:24.401368+00', NULL, NULL, NULL, NULL, NULL),
	(2, 'bc86aa09-c226-4c8c-a49e-ae8aaf91bb51', 27, 3, 0.5, 0, '2025-01-08 00:00:00+00', 1, '2025-01-08 00:00:00+00', 'infinity', 'permanent', 'explicit', 0, 0, NULL, NULL, 0, false, 2, 1, 'infinity', false, false, false, 'infinity', NULL, NULL, NULL, NULL, NULL),
	(2, '01a20423-b512-705a-9323-15262639fc93', 51, 0, 0.5, 0, '2025-01-04 00:00:00+00', 1, '2025-01-04 00:00:00+00', 'infinity', NULL, NULL, 0, 0, NULL, NULL, 0, true, 2, 32767, '2028-04-30 12:05:24.400368+00', false, false, false, '2028-04-30 12:05:24.401368+00', NULL, NULL, NULL, NULL, NULL);


--
-- Data for Name: api_keys; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.api_keys VALUES
	(1, '01a20423-b460-71ab-8419-f54288f7c323', '\xb1cec75f5ac10c92cfc2d3e39cf023df39f479fe220b252665add11ad6d11eea', 'laptop', '{read,write}', '2025-01-07 00:00:00+00', NULL),
	(2, '01a20423-b545-73e4-a154-eedf8aa72d63', '\x8681714c6f2baf1de1e6daef3cf05cce6466a99b9df530a83db01b1e329c6a27', 'laptop', '{read,write}', '2025-01-07 00:00:00+00', NULL);


--
-- Data for Name: contradictions; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.contradictions VALUES
	(1, '01a20423-b39f-77b8-a489-e2528710a51e', '01a20423-b3b0-7245-ba77-29c6025063e7', '2025-01-04 00:00:00+00', NULL),
	(2, '01a20423-b4a8-700c-8b76-652b77a9b2e2', '01a20423-b4b3-71f7-802a-a8805c413ff8', '2025-01-04 00:00:00+00', NULL);


--
-- Data for Name: decay_allowances; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.decay_allowances VALUES
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 1, 100, 1);


--
-- Data for Name: decay_parts; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.decay_parts VALUES
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 34, 0, 1, '2026-11-22 16:42:58.914378+00', 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.4339239999781057),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 1, 0, 1, '2026-11-22 16:42:58.829698+00', 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4.8225370001091505),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 19, 0, 1, '2026-11-22 16:42:58.877463+00', 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.343428999983189),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 3, 0, 1, '2026-11-22 16:42:58.836729+00', 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4.249221000009129),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 7, 0, 1, '2026-11-22 16:42:58.843216+00', 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.623796999931983),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 23, 0, 1, '2026-11-22 16:42:58.882842+00', 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.3281370000395327),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 10, 0, 1, '2026-11-22 16:42:58.849378+00', 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.5319810000373764),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 35, 0, 2, '2026-11-22 16:42:58.920942+00', 2, 2, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4.065768000032222),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 11, 0, 2, '2026-11-22 16:42:58.856567+00', 2, 2, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4.285585000047831),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 26, 0, 2, '2026-11-22 16:42:58.888808+00', 2, 2, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.3317219999844383),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 15, 0, 1, '2026-11-22 16:42:58.863558+00', 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.814251999983753),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 50, 0, 1, '2026-11-22 16:42:58.966682+00', 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4.72123500003363),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 17, 0, 1, '2026-11-22 16:42:58.871759+00', 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 5.520579000062753),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 27, 0, 1, '2026-11-22 16:42:58.895147+00', 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.450849000046219),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 39, 0, 2, '2026-11-22 16:42:58.930922+00', 2, 2, 0, 0, 2, 1, 0, 1, 0, 0, 0, 0, 0, 0, 7.193024000002879),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 28, 0, 1, '2026-11-22 16:42:58.901684+00', 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.614182999967852),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 1, 0, 1, '2026-11-22 16:42:59.01269+00', 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3.7074330000450573),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 33, 0, 2, '2026-11-22 16:42:58.908002+00', 2, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.4894370000984054),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 51, 0, 1, '2026-11-22 16:42:58.972284+00', 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.358743000035247),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 40, 0, 1, '2026-11-22 16:42:58.937816+00', 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4.277954000031059),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 11, 0, 2, '2026-11-22 16:42:59.036883+00', 2, 2, 0, 0, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 4.717630000072859),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 45, 0, 1, '2026-11-22 16:42:58.944204+00', 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 3.9527179999367945),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 52, 0, 1, '2026-11-22 16:42:58.979947+00', 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 5.278877000023385),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 48, 0, 1, '2026-11-22 16:42:58.949443+00', 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2.9275880000341203),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 3, 0, 1, '2026-11-22 16:42:59.018235+00', 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3.170060000002195),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 49, 0, 1, '2026-11-22 16:42:58.959127+00', 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 6.8874380000352176),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 58, 0, 1, '2026-11-22 16:42:58.985792+00', 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.2241119999980583),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 60, 0, 1, '2026-11-22 16:42:58.991776+00', 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 3.7403019999828757),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 7, 0, 1, '2026-11-22 16:42:59.024173+00', 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3.517408999982763),
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 61, 0, 1, '2026-11-22 16:42:58.998496+00', 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4.147748999912437),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 10, 0, 1, '2026-11-22 16:42:59.030013+00', 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3.3722320000606487),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 48, 0, 1, '2026-11-22 16:42:59.096434+00', 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 3.0084100000067338),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 15, 0, 1, '2026-11-22 16:42:59.041598+00', 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2.767360000007102),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 19, 0, 1, '2026-11-22 16:42:59.046058+00', 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2.631747999998879),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 50, 0, 1, '2026-11-22 16:42:59.100632+00', 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2.434683000046789),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 23, 0, 1, '2026-11-22 16:42:59.051233+00', 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2.990502999978162),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 1, 0, 1, '2026-11-22 16:42:59.133416+00', 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2.9175439999562514),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 26, 0, 2, '2026-11-22 16:42:59.056611+00', 2, 1, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3.309979000050589),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 51, 0, 1, '2026-11-22 16:42:59.105456+00', 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2.682133000007525),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 27, 0, 1, '2026-11-22 16:42:59.06111+00', 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2.6574160000336633),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 26, 0, 2, '2026-11-22 16:42:59.154942+00', 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.043182000055822),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 28, 0, 1, '2026-11-22 16:42:59.065682+00', 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2.6380870000366485),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 58, 0, 1, '2026-11-22 16:42:59.111009+00', 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3.0169520000526973),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 33, 0, 2, '2026-11-22 16:42:59.07098+00', 2, 1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3.292252999926859),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 11, 0, 1, '2026-11-22 16:42:59.138536+00', 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.098542999964593),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 35, 0, 2, '2026-11-22 16:42:59.075633+00', 2, 2, 0, 0, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2.7445350000334656),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 60, 0, 1, '2026-11-22 16:42:59.118316+00', 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4.943406999927902),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 39, 0, 1, '2026-11-22 16:42:59.080138+00', 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2.6889220000612113),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 39, 0, 1, '2026-11-22 16:42:59.180462+00', 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 7.713279999961742),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 40, 0, 2, '2026-11-22 16:42:59.086648+00', 2, 2, 0, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 4.610941000009916);
INSERT INTO public.decay_parts VALUES
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 61, 0, 1, '2026-11-22 16:42:59.12264+00', 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2.660509999941496),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 45, 0, 1, '2026-11-22 16:42:59.09168+00', 1, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3.069341000013992),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 15, 0, 1, '2026-11-22 16:42:59.144502+00', 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.285473000005368),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 27, 0, 1, '2026-11-22 16:42:59.160195+00', 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2.8122769999754382),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 23, 0, 1, '2026-11-22 16:42:59.149957+00', 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2.9166220000433896),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 51, 0, 1, '2026-11-22 16:42:59.214813+00', 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.675975999954062),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 33, 0, 1, '2026-11-22 16:42:59.165208+00', 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3.0880180000849577),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 40, 0, 1, '2026-11-22 16:42:59.189472+00', 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 3.7735810000185666),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 35, 0, 2, '2026-11-22 16:42:59.1704+00', 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2.934638999931849),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 45, 0, 1, '2026-11-22 16:42:59.200964+00', 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8.697017999907075),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 61, 0, 1, '2026-11-22 16:42:59.220517+00', 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2.9983440000478367),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 48, 0, 1, '2026-11-22 16:42:59.208033+00', 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4.314707999924394);


--
-- Data for Name: decay_runs; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.decay_runs VALUES
	('2cc86638-1388-4c21-aa5f-711428e4b59e', 'decay', '2025-01-11 00:00:00+00', '2026-11-22 16:42:58.815246+00', '2026-11-22 16:42:58.999587+00', NULL, '', false, false, NULL),
	('22f0bbf5-521c-41df-93ae-656cb295dc59', 'decay', '2025-02-10 00:00:00+00', '2026-11-22 16:42:59.001736+00', '2026-11-22 16:42:59.123288+00', NULL, '', false, false, NULL),
	('ad1663f6-9ac5-4735-b72e-12203e84e357', 'decay', '2025-03-02 00:00:00+00', '2026-11-22 16:42:59.124774+00', '2026-11-22 16:42:59.22126+00', NULL, '', false, false, NULL);


--
-- Data for Name: documents; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.documents VALUES
	(1, 'notes/boat.md', '/notes', '\x96dfa22440c8867f772170548f4f2b31e1d61d396d2899191102ee3dd264d51b', '2025-01-04 00:00:00+00'),
	(2, 'notes/boat.md', '/notes', '\x96dfa22440c8867f772170548f4f2b31e1d61d396d2899191102ee3dd264d51b', '2025-01-04 00:00:00+00');


--
-- Data for Name: embedders; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.embedders VALUES
	(true, 'hashing:char3-5-log-centred:256', 256, 20261121);


--
-- Data for Name: erasures; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.erasures OVERRIDING SYSTEM VALUE VALUES
	(1, 1),
	(2, 2);


--
-- Data for Name: events; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES
	(1, '01a20423-b355-7068-9994-4457ec34239c', 1, '2025-01-06 00:00:00+00', 'pinned', '{"until": null}'),
	(1, '01a20423-b369-71e0-85ff-3c83747d00a6', 2, '2025-01-07 00:00:00+00', 'forgotten', '{"reason": "asked"}'),
	(2, '01a20423-b472-735f-bab8-f863f567406b', 4, '2025-01-06 00:00:00+00', 'pinned', '{"until": null}'),
	(2, '01a20423-b47e-7744-9419-6f466deb8a0d', 5, '2025-01-07 00:00:00+00', 'forgotten', '{"reason": "asked"}'),
	(1, '01a20423-b37e-7280-95cd-c77652a2bb35', 7, '2025-01-11 00:00:00+00', 'forgotten', '{"reason": "expired"}'),
	(1, '01a20423-b3d0-74ed-9cc0-b4ba068b9b5d', 8, '2025-01-11 00:00:00+00', 'forgotten', '{"reason": "faded"}'),
	(2, '01a20423-b48f-77ef-8f4a-f76ee45c2129', 9, '2025-01-11 00:00:00+00', 'forgotten', '{"reason": "expired"}'),
	(2, '01a20423-b4cd-7504-b91d-924671e4e7b4', 10, '2025-01-11 00:00:00+00', 'forgotten', '{"reason": "faded"}'),
	(2, '01a20423-b4cd-7504-b91d-9245a12c9f58', 11, '2025-02-10 00:00:00+00', 'forgotten', '{"reason": "faded"}'),
	(1, '01a20423-b3d0-74ed-9cc0-b4b980676286', 12, '2025-02-10 00:00:00+00', 'forgotten', '{"reason": "faded"}'),
	(1, '01a20423-b389-767f-be5c-542778bdb4ff', 13, '2025-03-02 00:00:00+00', 'forgotten', '{"reason": "culled"}');


--
-- Data for Name: facts; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.facts VALUES
	(1, '01a20423-b2ff-711a-a77d-aee338569bba', 'semantic', 'Tea at four.', '\x999af6803cad7013b25d0c79f2ea420760ea51532f2f8177c89f70f7922915f5', NULL, NULL, NULL, NULL, NULL, NULL, '{food}', 0.5, NULL, '"s1"', 1, NULL, '2025-01-01 00:00:00+00', '2025-01-01 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(1, '01a20423-b355-7068-9994-4457ec34239c', 'semantic', 'Cake on Sunday with cinnamon.', '\xb16a35e1f5f8c0a681160bb7e86572d2fd1e4fe784d739c5de1f05fefb4fe070', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.9, NULL, '"s1"', 2, NULL, '2025-01-01 00:00:00+00', '2025-01-01 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(1, '01a20423-b393-7734-88a0-f1d1303cecf9', 'semantic', 'Ana lives in Rome.', '\x6586894e1c0ed64defff1a977b7d95214ef3f494e4bb0638a957e5b75e5681ad', NULL, NULL, 'Ana', 'city', 'Rome', NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-01 00:00:00+00', '2025-01-01 00:00:00+00', '2025-01-03 00:00:00+00', '2025-01-03 00:00:00+00', '01a20423-b39f-77b8-a489-e2528710a51e', NULL, NULL, NULL, DEFAULT),
	(1, '01a20423-b39f-77b8-a489-e2528710a51e', 'semantic', 'Ana lives in Bonn.', '\xbf98055e74b400291d13a2226941d2acf1731e0a090f0ee9ca0fce1253c2544e', NULL, NULL, 'Ana', 'city', 'Bonn', NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-03 00:00:00+00', '2025-01-03 00:00:00+00', NULL, NULL, NULL, '01a20423-b393-7734-88a0-f1d1303cecf9', NULL, NULL, DEFAULT),
	(1, '01a20423-b3b0-7245-ba77-29c6025063e7', 'semantic', 'Ana lives in Kyiv.', '\x01d9591110980058b5c0c4fc4f763d8f483356ea013d14c8cc7e5963ff373f92', NULL, NULL, 'Ana', 'city', 'Kyiv', NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-04 00:00:00+00', '2025-01-04 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(1, '01a20423-b3bd-74c6-90e6-4d09d09f8cae', 'semantic', 'Hunter2 is the password of the printer.', '\x14c370c20701792196cce4e7a3afd3ea9f3c3df48fc7493260f3521550e4cabd', NULL, NULL, NULL, NULL, NULL, 'chat', '{}', 0.5, '{"a": [1, 2]}', NULL, NULL, NULL, '2025-01-01 00:00:00+00', '2025-01-01 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(1, '01a20423-b3c7-7342-a326-503a13aef56d', 'semantic', '日本語を勉強しています。', '\x17cabce22609689656f333b4cb570f9ae6ce298c78bda1f8b97a6fd57828cbd5', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-02 00:00:00+00', '2025-01-02 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(1, '01a20423-b3da-70de-9256-5e2cc1dc985f', 'episodic', 'Met Jon at the harbour.', '\x88453fb0d2f4b85e2fa1386d2a569f2a7216d218ccd49d1eaee8d15bef9c275a', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, '"trip"', 5, NULL, '2025-01-02 00:00:00+00', '2025-01-02 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(1, '01a20423-b3e5-7604-b7a2-10854fa83936', 'episodic', 'Our wedding day.', '\xf920349ff2c520a47658f07e326794c7f361c12076773e59de40a2cb09a0e454', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, '"trip"', 6, NULL, '2025-01-02 00:00:00+00', '2025-01-02 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(1, 'ecdd991c-3be5-50b8-a9ed-69d0f2cf272c', 'chunk', '# Boat

The keel is oak.', '\x0aacf5e62970a26bd9ad72e16cc2c9e5c1af82a256934472519e2c407db38bcd', NULL, NULL, NULL, 'Boat', NULL, 'notes/boat.md', '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-04 00:00:00+00', '2025-01-04 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(1, '517aedb1-0bd0-5caf-972b-9f41393af19a', 'chunk', '## Engine

The engine is a Bukh, 20 horsepower.', '\x815d683d18f32274d2e97dd753ebf68608799afe10812cdbc6e3424fdb3446a8', NULL, NULL, NULL, 'Boat > Engine', NULL, 'notes/boat.md', '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-04 00:00:00+00', '2025-01-04 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(1, '01a20423-b415-7065-a9d0-e40e4f2c28dc', 'semantic', 'Mira moved to Leipzig and rents a flat near the canal', '\xa16a6528af08545262168298a35223deed93551172f5eeed78612c411a7349dc', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-04 00:00:00+00', '2025-01-04 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(1, '01a20423-b427-77d0-993d-550e1402269c', 'semantic', 'Mira has moved to Leipzig and rents a flat near the canal', '\xd0d2d3386761479aa8cec07f55b4e004ca6451994cdc5080ed5fe49458f0fcd6', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-04 00:00:00+00', '2025-01-04 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(1, '01a20423-b369-71e0-85ff-3c83747d00a6', 'semantic', 'The spare key is lost.', '\x44f84a3c88dacd70336a948e8ef6872c628ed5e2c15c5e6d0bb87d218063b0ff', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-01 00:00:00+00', '2025-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '2025-01-07 00:00:00+00', 'asked', DEFAULT),
	(2, '01a20423-b465-7015-9454-f7f09a8b6649', 'semantic', 'Tea at four.', '\x999af6803cad7013b25d0c79f2ea420760ea51532f2f8177c89f70f7922915f5', NULL, NULL, NULL, NULL, NULL, NULL, '{food}', 0.5, NULL, '"s1"', 1, NULL, '2025-01-01 00:00:00+00', '2025-01-01 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(2, '01a20423-b472-735f-bab8-f863f567406b', 'semantic', 'Cake on Sunday with cinnamon.', '\xb16a35e1f5f8c0a681160bb7e86572d2fd1e4fe784d739c5de1f05fefb4fe070', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.9, NULL, '"s1"', 2, NULL, '2025-01-01 00:00:00+00', '2025-01-01 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(2, '01a20423-b497-740a-bb36-8ff57457e08b', 'semantic', 'Oslo is cold in winter.', '\xb465d60a590cd2a87a7027de778cc5a654b4e57b8c0b34dad47c350c40ed745c', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-01 00:00:00+00', '2025-01-01 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(2, '01a20423-b49e-72cd-8ae0-844f42bc7544', 'semantic', 'Ana lives in Rome.', '\x6586894e1c0ed64defff1a977b7d95214ef3f494e4bb0638a957e5b75e5681ad', NULL, NULL, 'Ana', 'city', 'Rome', NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-01 00:00:00+00', '2025-01-01 00:00:00+00', '2025-01-03 00:00:00+00', '2025-01-03 00:00:00+00', '01a20423-b4a8-700c-8b76-652b77a9b2e2', NULL, NULL, NULL, DEFAULT),
	(2, '01a20423-b4a8-700c-8b76-652b77a9b2e2', 'semantic', 'Ana lives in Bonn.', '\xbf98055e74b400291d13a2226941d2acf1731e0a090f0ee9ca0fce1253c2544e', NULL, NULL, 'Ana', 'city', 'Bonn', NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-03 00:00:00+00', '2025-01-03 00:00:00+00', NULL, NULL, NULL, '01a20423-b49e-72cd-8ae0-844f42bc7544', NULL, NULL, DEFAULT),
	(2, '01a20423-b4b3-71f7-802a-a8805c413ff8', 'semantic', 'Ana lives in Kyiv.', '\x01d9591110980058b5c0c4fc4f763d8f483356ea013d14c8cc7e5963ff373f92', NULL, NULL, 'Ana', 'city', 'Kyiv', NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-04 00:00:00+00', '2025-01-04 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(2, '01a20423-b4bd-72fc-87c9-2fd3b08d7f39', 'semantic', 'Hunter2 is the password of the printer.', '\x14c370c20701792196cce4e7a3afd3ea9f3c3df48fc7493260f3521550e4cabd', NULL, NULL, NULL, NULL, NULL, 'chat', '{}', 0.5, '{"a": [1, 2]}', NULL, NULL, NULL, '2025-01-01 00:00:00+00', '2025-01-01 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(2, '01a20423-b4c5-7569-8a8c-fc024f869e69', 'semantic', '日本語を勉強しています。', '\x17cabce22609689656f333b4cb570f9ae6ce298c78bda1f8b97a6fd57828cbd5', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-02 00:00:00+00', '2025-01-02 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(1, '01a20423-b37e-7280-95cd-c77652a2bb35', 'semantic', 'The ticket is in the car.', '\xe3795749021ce31e4b5df390246b358d0457b34881c353a5be29b251d87f0080', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-01 00:00:00+00', '2025-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '2025-01-11 00:00:00+00', 'expired', DEFAULT),
	(1, '01a20423-b3d0-74ed-9cc0-b4ba068b9b5d', 'semantic', 'We meet right now.', '\xe41e633f92986280838f68deb4f061e16efa5ba26c6b60263a3b0d0fb6b27008', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-02 00:00:00+00', '2025-01-02 00:00:00+00', NULL, NULL, NULL, NULL, '2025-01-11 00:00:00+00', 'faded', DEFAULT),
	(2, '01a20423-b48f-77ef-8f4a-f76ee45c2129', 'semantic', 'The ticket is in the car.', '\xe3795749021ce31e4b5df390246b358d0457b34881c353a5be29b251d87f0080', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-01 00:00:00+00', '2025-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '2025-01-11 00:00:00+00', 'expired', DEFAULT),
	(1, '01a20423-b3d0-74ed-9cc0-b4b980676286', 'semantic', 'I need to take insulin twice a day.', '\x793c44ef0d9b9c794431eeded5689b6be2ec3cb785a0c4e11f6ae8d47079039a', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-02 00:00:00+00', '2025-01-02 00:00:00+00', NULL, NULL, NULL, NULL, '2025-02-10 00:00:00+00', 'faded', DEFAULT),
	(1, '01a20423-b389-767f-be5c-542778bdb4ff', 'semantic', 'Oslo is cold in winter.', '\xb465d60a590cd2a87a7027de778cc5a654b4e57b8c0b34dad47c350c40ed745c', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-01 00:00:00+00', '2025-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '2025-03-02 00:00:00+00', 'culled', DEFAULT),
	(2, '01a20423-b4e6-7493-b244-3610defe9da3', 'episodic', 'Met Jon at the harbour.', '\x88453fb0d2f4b85e2fa1386d2a569f2a7216d218ccd49d1eaee8d15bef9c275a', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, '"trip"', 5, NULL, '2025-01-02 00:00:00+00', '2025-01-02 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(2, '01a20423-b4f9-7259-8076-959661fe4c4a', 'episodic', 'Our wedding day.', '\xf920349ff2c520a47658f07e326794c7f361c12076773e59de40a2cb09a0e454', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, '"trip"', 6, NULL, '2025-01-02 00:00:00+00', '2025-01-02 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(2, '0fb44077-3445-5b6f-ae46-53e65ea6578c', 'chunk', '# Boat

The keel is oak.', '\x0aacf5e62970a26bd9ad72e16cc2c9e5c1af82a256934472519e2c407db38bcd', NULL, NULL, NULL, 'Boat', NULL, 'notes/boat.md', '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-04 00:00:00+00', '2025-01-04 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(2, 'cad2426f-1441-5df4-ac49-d1bd05f412a3', 'chunk', '## Engine

The engine is a Bukh, 20 horsepower.', '\x815d683d18f32274d2e97dd753ebf68608799afe10812cdbc6e3424fdb3446a8', NULL, NULL, NULL, 'Boat > Engine', NULL, 'notes/boat.md', '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-04 00:00:00+00', '2025-01-04 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(2, '01a20423-b47e-7744-9419-6f466deb8a0d', 'semantic', 'The spare key is lost.', '\x44f84a3c88dacd70336a948e8ef6872c628ed5e2c15c5e6d0bb87d218063b0ff', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-01 00:00:00+00', '2025-01-01 00:00:00+00', NULL, NULL, NULL, NULL, '2025-01-07 00:00:00+00', 'asked', DEFAULT),
	(2, '01a20423-b4cd-7504-b91d-924671e4e7b4', 'semantic', 'We meet right now.', '\xe41e633f92986280838f68deb4f061e16efa5ba26c6b60263a3b0d0fb6b27008', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-02 00:00:00+00', '2025-01-02 00:00:00+00', NULL, NULL, NULL, NULL, '2025-01-11 00:00:00+00', 'faded', DEFAULT),
	(2, '01a20423-b4cd-7504-b91d-9245a12c9f58', 'semantic', 'I need to take insulin twice a day.', '\x793c44ef0d9b9c794431eeded5689b6be2ec3cb785a0c4e11f6ae8d47079039a', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-02 00:00:00+00', '2025-01-02 00:00:00+00', NULL, NULL, NULL, NULL, '2025-02-10 00:00:00+00', 'faded', DEFAULT),
	(2, '01a20423-b512-705a-9323-15262639fc93', 'semantic', 'Mira moved to Leipzig and rents a flat near the canal', '\xa16a6528af08545262168298a35223deed93551172f5eeed78612c411a7349dc', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-04 00:00:00+00', '2025-01-04 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(2, '01a20423-b519-72e8-9fcc-2559a23eb59e', 'semantic', 'Mira has moved to Leipzig and rents a flat near the canal', '\xd0d2d3386761479aa8cec07f55b4e004ca6451994cdc5080ed5fe49458f0fcd6', NULL, NULL, NULL, NULL, NULL, NULL, '{}', 0.5, NULL, NULL, NULL, NULL, '2025-01-04 00:00:00+00', '2025-01-04 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT),
	(2, 'bc86aa09-c226-4c8c-a49e-ae8aaf91bb51', 'item', 'Ana likes tea.', '\x5e7e4c6ba62a8f2508fc761276e5ef4c7b3be0702638386729dc3a96ec8340c8', NULL, NULL, 'users/ana', 'profile', NULL, NULL, '{}', 0.5, '{"document": "{\"likes\": \"tea\"}", "created_at": "2025-01-08T00:00:00+00:00", "minutes": null, "indexed": true}', NULL, NULL, NULL, '2025-01-08 00:00:00+00', '2025-01-08 00:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, DEFAULT);


--
-- Data for Name: fading_rules; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.fading_rules VALUES
	(true, '{"hygiene": {"schedule": "onConsolidation", "episodicTTL": {"operator": "OR", "persistentDays": 90.0, "persistentTurns": 500, "permanentStaleDays": 180.0}, "confidenceDecay": {"halfLife": 180.0, "cullFloor": 0.1}}, "widest_bucket": 4, "cold_threshold": 0.25}');


--
-- Data for Name: forgotten_hashes; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.forgotten_hashes VALUES
	(1, '\x316b9e4ab4a088f87cfbe7fe26d20dba02915aaec2580bb3c129aced5fe7cfe6', '01a20423-b369-71e0-85ff-3c83747d00a6', '2025-01-07 00:00:00+00', 'asked'),
	(1, '\xab4ca26499e7d226e07a90c9fd3d28ff6493af14bf27a73b8efe37d15c9efedb', '01a20423-b374-774b-b778-e9bbf19ed799', '2025-01-07 00:00:00+00', 'asked'),
	(2, '\x629cb576f46e746aea5fb76aae33fc864f2fd1ad86efe87aeae6a0dc3e32d159', '01a20423-b47e-7744-9419-6f466deb8a0d', '2025-01-07 00:00:00+00', 'asked'),
	(2, '\xd6d6d3f0eaf7cba5b4202c9ebab66209045ea002ec6eff748413e24c9c8f8f03', '01a20423-b486-7222-bd17-a3af6ab726a6', '2025-01-07 00:00:00+00', 'asked');


--
-- Data for Name: janitors; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: languages; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.languages VALUES
	(true, 'english');


--
-- Data for Name: lexemes; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.lexemes VALUES
	(1, '20', 1),
	(1, 'ana', 2),
	(1, 'boat', 2),
	(1, 'bonn', 1),
	(1, 'bukh', 1),
	(1, 'cake', 1),
	(1, 'canal', 2),
	(1, 'car', 1),
	(1, 'cinnamon', 1),
	(1, 'citi', 2),
	(1, 'city', 2),
	(1, 'cold', 1),
	(1, 'day', 2),
	(1, 'engin', 1),
	(1, 'engine', 1),
	(1, 'flat', 2),
	(1, 'four', 1),
	(1, 'harbour', 1),
	(1, 'horsepow', 1),
	(1, 'horsepower', 1),
	(1, 'hunter2', 1),
	(1, 'insulin', 1),
	(1, 'jon', 1),
	(1, 'keel', 1),
	(1, 'kyiv', 1),
	(1, 'leipzig', 2),
	(1, 'live', 2),
	(1, 'lives', 2),
	(1, 'meet', 1),
	(1, 'met', 1),
	(1, 'mira', 2),
	(1, 'move', 2),
	(1, 'moved', 2),
	(1, 'near', 2),
	(1, 'need', 1),
	(1, 'oak', 1),
	(1, 'oslo', 1),
	(1, 'password', 1),
	(1, 'printer', 1),
	(1, 'rent', 2),
	(1, 'rents', 2),
	(1, 'right', 1),
	(1, 'sunday', 1),
	(1, 'take', 1),
	(1, 'tea', 1),
	(1, 'ticket', 1),
	(1, 'twice', 1),
	(1, 'wed', 1),
	(1, 'wedding', 1),
	(1, 'winter', 1);
INSERT INTO public.lexemes VALUES
	(1, 'い', 1),
	(1, 'いま', 1),
	(1, 'し', 1),
	(1, 'して', 1),
	(1, 'す', 1),
	(1, 'て', 1),
	(1, 'てい', 1),
	(1, 'ま', 1),
	(1, 'ます', 1),
	(1, 'を', 1),
	(1, 'を勉', 1),
	(1, '勉', 1),
	(1, '勉強', 1),
	(1, '強', 1),
	(1, '強し', 1),
	(1, '日', 1),
	(1, '日本', 1),
	(1, '本', 1),
	(1, '本語', 1),
	(1, '語', 1),
	(1, '語を', 1),
	(2, '20', 1),
	(2, 'ana', 3),
	(2, 'boat', 2),
	(2, 'bonn', 1),
	(2, 'bukh', 1),
	(2, 'cake', 1),
	(2, 'canal', 2),
	(2, 'car', 1),
	(2, 'cinnamon', 1),
	(2, 'citi', 2),
	(2, 'city', 2),
	(2, 'cold', 1),
	(2, 'day', 2),
	(2, 'engin', 1),
	(2, 'engine', 1),
	(2, 'flat', 2),
	(2, 'four', 1),
	(2, 'harbour', 1),
	(2, 'horsepow', 1),
	(2, 'horsepower', 1),
	(2, 'hunter2', 1),
	(2, 'insulin', 1),
	(2, 'jon', 1),
	(2, 'keel', 1),
	(2, 'kyiv', 1),
	(2, 'leipzig', 2),
	(2, 'like', 1),
	(2, 'likes', 1),
	(2, 'live', 2);
INSERT INTO public.lexemes VALUES
	(2, 'lives', 2),
	(2, 'meet', 1),
	(2, 'met', 1),
	(2, 'mira', 2),
	(2, 'move', 2),
	(2, 'moved', 2),
	(2, 'near', 2),
	(2, 'need', 1),
	(2, 'oak', 1),
	(2, 'oslo', 1),
	(2, 'password', 1),
	(2, 'printer', 1),
	(2, 'profil', 1),
	(2, 'profile', 1),
	(2, 'rent', 2),
	(2, 'rents', 2),
	(2, 'right', 1),
	(2, 'sunday', 1),
	(2, 'take', 1),
	(2, 'tea', 2),
	(2, 'ticket', 1),
	(2, 'twice', 1),
	(2, 'user', 1),
	(2, 'users', 1),
	(2, 'wed', 1),
	(2, 'wedding', 1),
	(2, 'winter', 1),
	(2, 'い', 1),
	(2, 'いま', 1),
	(2, 'し', 1),
	(2, 'して', 1),
	(2, 'す', 1),
	(2, 'て', 1),
	(2, 'てい', 1),
	(2, 'ま', 1),
	(2, 'ます', 1),
	(2, 'を', 1),
	(2, 'を勉', 1),
	(2, '勉', 1),
	(2, '勉強', 1),
	(2, '強', 1),
	(2, '強し', 1),
	(2, '日', 1),
	(2, '日本', 1),
	(2, '本', 1),
	(2, '本語', 1),
	(2, '語', 1),
	(2, '語を', 1);


--
-- Data for Name: likenesses; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.likenesses VALUES
	(1, '01a20423-b415-7065-a9d0-e40e4f2c28dc', '01a20423-b427-77d0-993d-550e1402269c', 0.9614654183387756, '2025-01-05 00:00:00+00', NULL),
	(2, '01a20423-b512-705a-9323-15262639fc93', '01a20423-b519-72e8-9fcc-2559a23eb59e', 0.9614654183387756, '2025-01-05 00:00:00+00', NULL);


--
-- Data for Name: links; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.links VALUES
	(1, '523d8eea-a9d0-41ab-b9f7-e0c73925432c', '01a20423-b2ff-711a-a77d-aee338569bba', '01a20423-b355-7068-9994-4457ec34239c', 'RELATED_TO', 0.5, '2025-01-04 00:00:00+00'),
	(2, '60e67302-4f74-47c9-8543-afc5011b2e88', '01a20423-b465-7015-9454-f7f09a8b6649', '01a20423-b472-735f-bab8-f863f567406b', 'RELATED_TO', 0.5, '2025-01-04 00:00:00+00');


--
-- Data for Name: namespaces; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.namespaces OVERRIDING SYSTEM VALUE VALUES
	(1, 'default', '2026-11-22 16:42:58.175715+00', 16, 108, '2025-01-09 00:00:00+00', NULL, '062b2b2b-50fc-41b8-a9cb-cc701f6f41fe', 4, '{}', NULL, NULL, 0),
	(2, 'mira', '2026-11-22 16:42:58.533708+00', 17, 122, '2025-01-09 00:00:00+00', NULL, '93d2083e-c1af-4202-9d51-769f9c75915a', 4, '{"hygiene": {"confidenceDecay": {"halfLife": 365}}}', '2025-01-08 00:00:00+00', '2026-11-22 16:42:58.763493+00', 0);


--
-- Data for Name: relations; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.relations OVERRIDING SYSTEM VALUE VALUES
	(1, 1, 'Ana', 'Kyiv', 'lives_in', 0.9, '2025-01-04 00:00:00+00', true, 0.9, '2025-01-04 00:00:00+00'),
	(1, 2, 'Ana', 'Jon', 'knows', 1, '2025-01-04 00:00:00+00', false, 1, '2025-01-04 00:00:00+00'),
	(2, 3, 'Ana', 'Kyiv', 'lives_in', 0.9, '2025-01-04 00:00:00+00', true, 0.9, '2025-01-04 00:00:00+00'),
	(2, 4, 'Ana', 'Jon', 'knows', 1, '2025-01-04 00:00:00+00', false, 1, '2025-01-04 00:00:00+00');


--
-- Data for Name: schema_version; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.schema_version VALUES
	(1, '2026-11-22 16:42:57.447725+00');


--
-- Data for Name: signatures; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.signatures VALUES
	(1, '01a20423-b2ff-711a-a77d-aee338569bba', true, B'1001011000101100010111101111001111101110111110000111110010000110100011101001101111001000011100110100000001001110001010010000111001010101001111100010111000111100001100010001000100101110111011000100101100001001101100011101111101110100000010011100101010000111000011000101110001100110011101101000010010101001110001100111110101001001101100001110111101010101101011111010010100000011000111101111011000010011100110001100011101100011101100001100010001011101110100001000010000011010110010011000110011001010011111001111100001010011001110101111100010000110011111010010101100000001000011100010111110010101111011111111110011000100110001101110000001111101000000111011110010111110110100010001001111000111111001110010000001100001111111110111110100000000100111100111101111000000101111001101000101001110100101010100001101000011001011010000101010000100000000111010010011011101111101000010010010010100100010011000111010000101101011000110000010011000101101001001010101010001100001100101010000111010101100101010011000100110110010111100011011101000'),
	(1, '01a20423-b355-7068-9994-4457ec34239c', true, B'0010101010111000001101100110011110010000100001000110100010001111111110011101100010100101110010110100110001110001001001000111101000101000110100001000100100100101111101110111101111100010101011011001001000000010001010101111100110100000101010001101110111110100100001001111001011010000100011011111110111111010100010000000001110010001001101110101011111000011001011110100111010011110111001000010110111010011011110110101010100110110000001101101010110100111010010011110001011110010111000100111001111000101101101110000011110010010100100010100010000111000110110000000010011111010011010000010111101110101110110001110101100100010010000101001001111101111011001111010001100110111011000001101100110100011110111011010001110110000011101000111110011010011010101000011011000110110101101100111101101001101010000110111111101011110100100100110110001111111110000011011110111011100001111110100100010100001010011000000110000110111111110101000110101111111111110001001010110110110000101101001001110010111100111110110111000011111111010011100111011010011'),
	(1, '01a20423-b393-7734-88a0-f1d1303cecf9', false, B'1111011001110001101101111000001111111101000010001111110101101010100000101101110110100100110001110010001110000011001010100100101001010110101011100001100100111100000000111000010010010101100110010000100111101010110000001010011110010011111010011001001011001110011010010110110010111000111111110101010011100011000101100011010111010010100101000101101101011111001001101010110101100001011101110100010001011010000111011000001111100110110101011100101111101000001101000000110001010011011101010111110000110001011001110100000111110101100110111010000011010110100000100011011101000000110111111110011111010111111001000111110011100000100011010100010100010000100011010111011010011100001101001110110010101100101001010100001001110001101011010001010101000001101110111001111011101001001000000111010111101011111101010111011101100111100001010100000001110010010101110110000011011011100011100000011101011010001110011000000000110000001000110010010010010000011111011000111101011110110000101111111011000110011111010011010110100000110010000011011111000000'),
	(1, '01a20423-b39f-77b8-a489-e2528710a51e', true, B'1011010000111001101001111101010111111000011010001010000100100010111110000111010100110100000000110111101110000011101011110110010000000111101011001000100110101000000101011010110010010111001010001010100111000000110001001001101110110110101111011110000011000001000011000110010110101101101100111110010011110111100110000011000101010110100101010111101010001101001011011010100001001001010101111010000101011010100101101101100111000111001010011000001101110101011111110110111010001011011110001101110000100000001011000010001110100100100100111010100000011010100000000100111101000000110010111110101111010111101111100111101111000101100110110110010010101001000111101111011111011100000101010010111010111001011001010100001111100101101011010011000110000010100001001011100101101001000010010111100111111011111111000111111100100111101011110100000001111000010001010001010000011001001011100011011101011000001110011001001000010000010000110000010000101011011110001010110101001110110001011111110011000100010111000011111100000110010010001001010011000110'),
	(1, '01a20423-b3b0-7245-ba77-29c6025063e7', true, B'1101011001011000101001011101001111011001010000000100100100100011101000001001111100110100100000110111011110100011101000110011011000010000100011101000100100101100000100011100010100010011101000011010000010010010100101001011000010010010101011111001000001000000110011010010011010101000110001111100111111111111100101001010010011000010000111010111101110000011101011001110000001000001011101111110000001010010001110001100000111101011010000011001101101111011001101100111110001011011110010000001110000111000001001000100000111110100110110110010000011010101100010110000001101000000010000111110111110110111111001000111100111001101110110110111000110010001001101110010011011011101001101111110111110001100010001011110001010100101101011100011010100010010101110101011101001101001001001001110100111101010110101010000011001100011101011010100000101100000010101001001010011011101001001101000010100011010100011010001101010010000011011110010000010101001011110101001110100010111110111001101111111100111011111011011111100100100110010001001010011000010'),
	(1, '01a20423-b3bd-74c6-90e6-4d09d09f8cae', true, B'0000010011001000100100010110001000000110010111010000101010011101101011011110101011000100001010001101110010101010101110100001011110010001100010110111101000000110011011011000011010101110010001100110111100100101111000001011000111101010111110111001110111010111100101010001000010000111001011101010111110011000111111110010001101110100011101111100000101011100010000011100001011110101010011101001001110000101111111011001100000010111000111001100000011000000011000011000101111001000010111011000110100111001000010111101010000001000100000100001100111100101010111110100011100111001101100011110101010001101011000101100010111111110111011100111110101100100111010111011010011101111000011001100000000100110000111000100001000100100101010111110111011111101111001110000110001110101001101000000101111110011000011011110000110001010110111110101011111100100101011011100001000011100011010111001001010010101111001101111101011101001101001011101101100101110100100110000100010100101000001001010101101111100001101101111100010101101001101101010100101010101'),
	(1, '01a20423-b3c7-7342-a326-503a13aef56d', true, B'0000000101001010110111101000101111000111010101100110100111001000100111011011000010110110100110001111101000011011000101000010010011001011101010110000101001111100110101100101010001011110010010100010111000101110000110110000010011001001001001110101001111001110101011100000001111111011110001000101101011010011101100011101100100100111001111100110000100010100010000111010010000100000010001110111011101110100011011110000111100010100010001010111101000001000001011001100010101111110011011011111001001110000011100011111011001100011010110100000100111001001000010110110011000000100001100011100000000010110100001011110010011110010001101000111010101000110100011111110101001000100110101100010011001011001000101110010001110100111100110000101101100101111111101000110001011001010011010111001100010000011011011011111010000100011010111000101111101000110010100110001000100110011111100111110001000100010101001001100010111110110010100001101101100101110001011000111010000111110100001011100110000111100111111101111011011110111111000111011010001101001'),
	(1, '01a20423-b3da-70de-9256-5e2cc1dc985f', true, B'0010010111111010111110001111011000111110010011001101000010100110011010001011101110101101111010001101000101101111011011100101011010000111100111011110101110101011100000011001101101111111110001000001110100100111011010000101001111111010110100000101010110100110100001100110010000001110101101101010000011101011100011110011000001111100111110110011010101001100111010110010100110001100001010101101001011000111000110011110000111000001000101011100011010110101100101100010011001010011010011010101100011101111111001100101010000110010011010110111110000000001001010001010111100111001010110100110011001010111000000100110000011110000010000111010001100110100001000110010110000010101101011010000000011000110100000010010100111110001111110111011010101000100000110101000010110011100001101001011010101100110101000001101001101100101011111001000001001100101001011100100001001001101000110100010000000010101000011101011101000000000111011001101100110000001001110111001110001001111100000100011100000000010000101111000101000111001011101000101011001101010'),
	(1, '01a20423-b3e5-7604-b7a2-10854fa83936', true, B'1011010111001111111100101110001110001110101101101101101011001100001111110101010111001101011011111010000010100110110001011100101100000010011101000111011101100100110101110011000100001011100001101011001100011001001011000101101100000000101100100100101110110100010001001011000000111000000001000011011000101100100101010010100000110100100001101111110110101111011010111001110110110010110110101100100100001001110110001111011001100100000011010011111010111010000100111000001100110100000011001100111100011011001001111100000110110000010001001100000000100101101100101011010011011111001010011000111111000111000001101111101110001100100100001001111110100001101001110100000010010001110010111110100010000000100100001011001011110111011001010110000100111101111001100100010100111111010000101111001111110000111111100100000100101111000001111011110110110111011011001111010101001100101000011001110101010101110111101101111100000011001110000000001100010011011000100101000111000011011100011011010000001101010111111011011101101110110111001000001000011101'),
	(1, '517aedb1-0bd0-5caf-972b-9f41393af19a', true, B'0100100001111011111000101000100110000001001001001110000010100100011010100101101111000101001010110110111010111111111001101001001011000001100110011011111000101111011010011011111111001111111101111001010000100111100111000001100010100011110000111011010110110000000100100000010110100110100110101010101010111110011110110011100100011100010001110011000000100100001000011010011110111110000111000111001011111100010010011100111001010010000110001101010011110100110100111110101111011100101110111100101101111111100111011110001001010001001000111100001101100000100100101100011001001000011010111110111001001111000101101101000100111100000111111101000001111001001100100011101100110110000010011000000111000010001101100110110100001000111101101001001011001100110000011100110001000111011111000100101001010110010001001101011001000010001100100000001110000011001010101011100000101100101110010000010110110100100111111001011101011001001011001001100010110110011011100010000111100001000000000011111010111001111101101010000011010000101000000111011110111101'),
	(1, 'ecdd991c-3be5-50b8-a9ed-69d0f2cf272c', true, B'0001010111001100011110011101010100100000110001010011110111001111001010111000100110001101001010001100011100101100101100110000111010001111100110110010101101100001111010010001001101011100011010101011011101001101010011000000001110111101111100011011001001111000101110100110101010101111110110100010101011011000110000110111100011111000011101011010101000101100001010100110001100110000010010001110100000101001011000101101100001100010011101011000010001110011010101011000011100101000111010110110100110001110010110111101111100110011001000101101110100001101001111011110100010111101001011011000100000111110010010100101000111101011011101101111001011110100110001000111000011010111111011110010110001001101011110000111110001101101100011111011100101101101101100111111111100110100010111100101010110011101001111111100100000010011010111100001111010011111111010011110000001001100100010011100111010000110110000111111001011100001101000011111011100100111000111010110100010000010001000010000010000111101001011101100000100101101001101100000001110001101'),
	(1, '01a20423-b415-7065-a9d0-e40e4f2c28dc', true, B'1010100000001000111100101111100001110110101011001100110110001101111011011011001010010001010101111010011000111001101001100010011010001110111110100000101001001101101001011011000110110100011010001011111000001110001010000001000100111011101000111101010000110101111101000110111011010001111110100010010110110010011010011000110100011010101100010000010011001001101001110010011011111100010010000001101101001000111101111011100010000101011110110110100000101011110001111000101010110000001011100100101111011001011100110000110001000010011011011001101010011011011000011100010101001110010111101000111010111100100100111101110001100011000101111000100110110110100001010001001101100110111111111000110100011101001100010010001101100110101111000010011001101111111100100100011011110111001000001101011011010101010001100001011000100000110111110101111010000111111111010101011010011010011100111011111111100110000111111010010010100101000110101111101110100000111011000011100000000010100000011000101100001011001101001100011101110111010000111011110111111111'),
	(1, '01a20423-b427-77d0-993d-550e1402269c', true, B'1011100001001000111100111111101001111100100011011100010110001101111011011011001010110001010101111010011000001001111011100010011010000010011110110000001001101001101001011011000110110100011010001011111000011111001010000001000100111011101010111101010000110101111100000110111001011001111110100010010110110010011010011010110100010010101100010000011011101101001011110011011011111110010010001001101101101000110101111011100010000101011110111110100000100010010001101000111010110100001011100100101111011101011100110000110001000010011011111000101010011011001000011100010001001110010111101000111010111100100100111101110001100011001101011100100110110110100001010001001101000110010111010000110100011101001100010010001001100111101111010110011001101111101100100110011111110111001000101110011111010101010001100001011000100000111111110101111010000101111110010101011110011010001100011011111111001110000111111010010010100101000001001111100111100000111001000011100000000010100000010000101101001011001101001101111101110111010000101011110111101101'),
	(1, '01a20423-b369-71e0-85ff-3c83747d00a6', false, B'1010110101100010010110011100100001110000110011110110110000101101111100011001001010111101011000001000101010010100000011011111011110001011100111111011100011101111101011011110011010011101111000101111111110110001011011000010101111101110111010001001011110100110100100010100001011011000100110010000111010010011101000011110101101010100011101011101100111101110001100000000011011010101011000001001010001001001011110111001100010010010110110100100000011000011011001101000100111101001100011110100011100011110011100010001010010110111111000010100000100010111001110010110001110110110011000011110101101110100010110010100001110010000110111111111000011100100011001111001011010100100010001101001000010101111111010100010111100101000100110100110001101001101001100111100011000000101111101001101111101000111001010001010011110101011110110110101010100000111011111001100110001011000101110001000100111000101100111000001001001110111011101011101001100110100001000111010011010001110000111101011100100000101001010101001101010000101001000000100011011000100'),
	(2, '01a20423-b465-7015-9454-f7f09a8b6649', true, B'1001011000101100010111101111001111101110111110000111110010000110100011101001101111001000011100110100000001001110001010010000111001010101001111100010111000111100001100010001000100101110111011000100101100001001101100011101111101110100000010011100101010000111000011000101110001100110011101101000010010101001110001100111110101001001101100001110111101010101101011111010010100000011000111101111011000010011100110001100011101100011101100001100010001011101110100001000010000011010110010011000110011001010011111001111100001010011001110101111100010000110011111010010101100000001000011100010111110010101111011111111110011000100110001101110000001111101000000111011110010111110110100010001001111000111111001110010000001100001111111110111110100000000100111100111101111000000101111001101000101001110100101010100001101000011001011010000101010000100000000111010010011011101111101000010010010010100100010011000111010000101101011000110000010011000101101001001010101010001100001100101010000111010101100101010011000100110110010111100011011101000'),
	(2, '01a20423-b472-735f-bab8-f863f567406b', true, B'0010101010111000001101100110011110010000100001000110100010001111111110011101100010100101110010110100110001110001001001000111101000101000110100001000100100100101111101110111101111100010101011011001001000000010001010101111100110100000101010001101110111110100100001001111001011010000100011011111110111111010100010000000001110010001001101110101011111000011001011110100111010011110111001000010110111010011011110110101010100110110000001101101010110100111010010011110001011110010111000100111001111000101101101110000011110010010100100010100010000111000110110000000010011111010011010000010111101110101110110001110101100100010010000101001001111101111011001111010001100110111011000001101100110100011110111011010001110110000011101000111110011010011010101000011011000110110101101100111101101001101010000110111111101011110100100100110110001111111110000011011110111011100001111110100100010100001010011000000110000110111111110101000110101111111111110001001010110110110000101101001001110010111100111110110111000011111111010011100111011010011'),
	(2, '01a20423-b497-740a-bb36-8ff57457e08b', true, B'1011010101111110001100110110111100011100011100001001101010111111111000011011011101000100001001001010111010101101101110111001011001010100100001101011100101000000111111001001111111100110101010001000010000010011111000010110000010101111110011011011010111010001001111011110010010100100011010110010011110111000000110100000001101001000011011111000001100101110001010110100001011011111011011001000010001001001011110010101011110010000000111111101011011110010000010011001011000001010010010011111001101111000101010110101010110000110011110110001101000010011010111000100100001001001111010011110000011001001100111101111010101011010011111100110011110000101111010110001011000000110001011100000101000100011011011010110100110111010101010111011001100101111100000100001110001010100001001100110101011110000011110111101011000001011001100100010000011101001110011000110000000011000011110111100000011011011100100001001011110000011101101011110000111101100011011001101110011001111001100001101101101111110100111101011100110011101111100011100011110001101'),
	(2, '01a20423-b49e-72cd-8ae0-844f42bc7544', false, B'1111011001110001101101111000001111111101000010001111110101101010100000101101110110100100110001110010001110000011001010100100101001010110101011100001100100111100000000111000010010010101100110010000100111101010110000001010011110010011111010011001001011001110011010010110110010111000111111110101010011100011000101100011010111010010100101000101101101011111001001101010110101100001011101110100010001011010000111011000001111100110110101011100101111101000001101000000110001010011011101010111110000110001011001110100000111110101100110111010000011010110100000100011011101000000110111111110011111010111111001000111110011100000100011010100010100010000100011010111011010011100001101001110110010101100101001010100001001110001101011010001010101000001101110111001111011101001001000000111010111101011111101010111011101100111100001010100000001110010010101110110000011011011100011100000011101011010001110011000000000110000001000110010010010010000011111011000111101011110110000101111111011000110011111010011010110100000110010000011011111000000'),
	(2, '01a20423-b4a8-700c-8b76-652b77a9b2e2', true, B'1011010000111001101001111101010111111000011010001010000100100010111110000111010100110100000000110111101110000011101011110110010000000111101011001000100110101000000101011010110010010111001010001010100111000000110001001001101110110110101111011110000011000001000011000110010110101101101100111110010011110111100110000011000101010110100101010111101010001101001011011010100001001001010101111010000101011010100101101101100111000111001010011000001101110101011111110110111010001011011110001101110000100000001011000010001110100100100100111010100000011010100000000100111101000000110010111110101111010111101111100111101111000101100110110110010010101001000111101111011111011100000101010010111010111001011001010100001111100101101011010011000110000010100001001011100101101001000010010111100111111011111111000111111100100111101011110100000001111000010001010001010000011001001011100011011101011000001110011001001000010000010000110000010000101011011110001010110101001110110001011111110011000100010111000011111100000110010010001001010011000110'),
	(2, '01a20423-b4b3-71f7-802a-a8805c413ff8', true, B'1101011001011000101001011101001111011001010000000100100100100011101000001001111100110100100000110111011110100011101000110011011000010000100011101000100100101100000100011100010100010011101000011010000010010010100101001011000010010010101011111001000001000000110011010010011010101000110001111100111111111111100101001010010011000010000111010111101110000011101011001110000001000001011101111110000001010010001110001100000111101011010000011001101101111011001101100111110001011011110010000001110000111000001001000100000111110100110110110010000011010101100010110000001101000000010000111110111110110111111001000111100111001101110110110111000110010001001101110010011011011101001101111110111110001100010001011110001010100101101011100011010100010010101110101011101001101001001001001110100111101010110101010000011001100011101011010100000101100000010101001001010011011101001001101000010100011010100011010001101010010000011011110010000010101001011110101001110100010111110111001101111111100111011111011011111100100100110010001001010011000010'),
	(2, '01a20423-b4bd-72fc-87c9-2fd3b08d7f39', true, B'0000010011001000100100010110001000000110010111010000101010011101101011011110101011000100001010001101110010101010101110100001011110010001100010110111101000000110011011011000011010101110010001100110111100100101111000001011000111101010111110111001110111010111100101010001000010000111001011101010111110011000111111110010001101110100011101111100000101011100010000011100001011110101010011101001001110000101111111011001100000010111000111001100000011000000011000011000101111001000010111011000110100111001000010111101010000001000100000100001100111100101010111110100011100111001101100011110101010001101011000101100010111111110111011100111110101100100111010111011010011101111000011001100000000100110000111000100001000100100101010111110111011111101111001110000110001110101001101000000101111110011000011011110000110001010110111110101011111100100101011011100001000011100011010111001001010010101111001101111101011101001101001011101101100101110100100110000100010100101000001001010101101111100001101101111100010101101001101101010100101010101'),
	(2, '01a20423-b4c5-7569-8a8c-fc024f869e69', true, B'0000000101001010110111101000101111000111010101100110100111001000100111011011000010110110100110001111101000011011000101000010010011001011101010110000101001111100110101100101010001011110010010100010111000101110000110110000010011001001001001110101001111001110101011100000001111111011110001000101101011010011101100011101100100100111001111100110000100010100010000111010010000100000010001110111011101110100011011110000111100010100010001010111101000001000001011001100010101111110011011011111001001110000011100011111011001100011010110100000100111001001000010110110011000000100001100011100000000010110100001011110010011110010001101000111010101000110100011111110101001000100110101100010011001011001000101110010001110100111100110000101101100101111111101000110001011001010011010111001100010000011011011011111010000100011010111000101111101000110010100110001000100110011111100111110001000100010101001001100010111110110010100001101101100101110001011000111010000111110100001011100110000111100111111101111011011110111111000111011010001101001'),
	(2, '01a20423-b4e6-7493-b244-3610defe9da3', true, B'0010010111111010111110001111011000111110010011001101000010100110011010001011101110101101111010001101000101101111011011100101011010000111100111011110101110101011100000011001101101111111110001000001110100100111011010000101001111111010110100000101010110100110100001100110010000001110101101101010000011101011100011110011000001111100111110110011010101001100111010110010100110001100001010101101001011000111000110011110000111000001000101011100011010110101100101100010011001010011010011010101100011101111111001100101010000110010011010110111110000000001001010001010111100111001010110100110011001010111000000100110000011110000010000111010001100110100001000110010110000010101101011010000000011000110100000010010100111110001111110111011010101000100000110101000010110011100001101001011010101100110101000001101001101100101011111001000001001100101001011100100001001001101000110100010000000010101000011101011101000000000111011001101100110000001001110111001110001001111100000100011100000000010000101111000101000111001011101000101011001101010'),
	(2, '01a20423-b4f9-7259-8076-959661fe4c4a', true, B'1011010111001111111100101110001110001110101101101101101011001100001111110101010111001101011011111010000010100110110001011100101100000010011101000111011101100100110101110011000100001011100001101011001100011001001011000101101100000000101100100100101110110100010001001011000000111000000001000011011000101100100101010010100000110100100001101111110110101111011010111001110110110010110110101100100100001001110110001111011001100100000011010011111010111010000100111000001100110100000011001100111100011011001001111100000110110000010001001100000000100101101100101011010011011111001010011000111111000111000001101111101110001100100100001001111110100001101001110100000010010001110010111110100010000000100100001011001011110111011001010110000100111101111001100100010100111111010000101111001111110000111111100100000100101111000001111011110110110111011011001111010101001100101000011001110101010101110111101101111100000011001110000000001100010011011000100101000111000011011100011011010000001101010111111011011101101110110111001000001000011101'),
	(2, '0fb44077-3445-5b6f-ae46-53e65ea6578c', true, B'0001010111001100011110011101010100100000110001010011110111001111001010111000100110001101001010001100011100101100101100110000111010001111100110110010101101100001111010010001001101011100011010101011011101001101010011000000001110111101111100011011001001111000101110100110101010101111110110100010101011011000110000110111100011111000011101011010101000101100001010100110001100110000010010001110100000101001011000101101100001100010011101011000010001110011010101011000011100101000111010110110100110001110010110111101111100110011001000101101110100001101001111011110100010111101001011011000100000111110010010100101000111101011011101101111001011110100110001000111000011010111111011110010110001001101011110000111110001101101100011111011100101101101101100111111111100110100010111100101010110011101001111111100100000010011010111100001111010011111111010011110000001001100100010011100111010000110110000111111001011100001101000011111011100100111000111010110100010000010001000010000010000111101001011101100000100101101001101100000001110001101'),
	(2, 'cad2426f-1441-5df4-ac49-d1bd05f412a3', true, B'0100100001111011111000101000100110000001001001001110000010100100011010100101101111000101001010110110111010111111111001101001001011000001100110011011111000101111011010011011111111001111111101111001010000100111100111000001100010100011110000111011010110110000000100100000010110100110100110101010101010111110011110110011100100011100010001110011000000100100001000011010011110111110000111000111001011111100010010011100111001010010000110001101010011110100110100111110101111011100101110111100101101111111100111011110001001010001001000111100001101100000100100101100011001001000011010111110111001001111000101101101000100111100000111111101000001111001001100100011101100110110000010011000000111000010001101100110110100001000111101101001001011001100110000011100110001000111011111000100101001010110010001001101011001000010001100100000001110000011001010101011100000101100101110010000010110110100100111111001011101011001001011001001100010110110011011100010000111100001000000000011111010111001111101101010000011010000101000000111011110111101'),
	(2, '01a20423-b512-705a-9323-15262639fc93', true, B'1010100000001000111100101111100001110110101011001100110110001101111011011011001010010001010101111010011000111001101001100010011010001110111110100000101001001101101001011011000110110100011010001011111000001110001010000001000100111011101000111101010000110101111101000110111011010001111110100010010110110010011010011000110100011010101100010000010011001001101001110010011011111100010010000001101101001000111101111011100010000101011110110110100000101011110001111000101010110000001011100100101111011001011100110000110001000010011011011001101010011011011000011100010101001110010111101000111010111100100100111101110001100011000101111000100110110110100001010001001101100110111111111000110100011101001100010010001101100110101111000010011001101111111100100100011011110111001000001101011011010101010001100001011000100000110111110101111010000111111111010101011010011010011100111011111111100110000111111010010010100101000110101111101110100000111011000011100000000010100000011000101100001011001101001100011101110111010000111011110111111111'),
	(2, '01a20423-b519-72e8-9fcc-2559a23eb59e', true, B'1011100001001000111100111111101001111100100011011100010110001101111011011011001010110001010101111010011000001001111011100010011010000010011110110000001001101001101001011011000110110100011010001011111000011111001010000001000100111011101010111101010000110101111100000110111001011001111110100010010110110010011010011010110100010010101100010000011011101101001011110011011011111110010010001001101101101000110101111011100010000101011110111110100000100010010001101000111010110100001011100100101111011101011100110000110001000010011011111000101010011011001000011100010001001110010111101000111010111100100100111101110001100011001101011100100110110110100001010001001101000110010111010000110100011101001100010010001001100111101111010110011001101111101100100110011111110111001000101110011111010101010001100001011000100000111111110101111010000101111110010101011110011010001100011011111111001110000111111010010010100101000001001111100111100000111001000011100000000010100000010000101101001011001101001101111101110111010000101011110111101101'),
	(2, '01a20423-b47e-7744-9419-6f466deb8a0d', false, B'1010110101100010010110011100100001110000110011110110110000101101111100011001001010111101011000001000101010010100000011011111011110001011100111111011100011101111101011011110011010011101111000101111111110110001011011000010101111101110111010001001011110100110100100010100001011011000100110010000111010010011101000011110101101010100011101011101100111101110001100000000011011010101011000001001010001001001011110111001100010010010110110100100000011000011011001101000100111101001100011110100011100011110011100010001010010110111111000010100000100010111001110010110001110110110011000011110101101110100010110010100001110010000110111111111000011100100011001111001011010100100010001101001000010101111111010100010111100101000100110100110001101001101001100111100011000000101111101001101111101000111001010001010011110101011110110110101010100000111011111001100110001011000101110001000100111000101100111000001001001110111011101011101001100110100001000111010011010001110000111101011100100000101001010101001101010000101001000000100011011000100'),
	(2, 'bc86aa09-c226-4c8c-a49e-ae8aaf91bb51', true, B'1001010111011100001011111001101111011011010110100010111010101111100000001000000111000101110110010111111010100011001000110110101010111111110110101100000011010001011111101110000011110110110100010010000000001001100100001001100110010001100101000101101001000111011001000111110100111010001101110110100100010011100010110100110110011011000100000111000111000101010001001011110111011001000101000010100101011010100000101100100010101011011001011111110111111001001111001111111110010011110010011000010010101010100000010100001001001101011010011100110100100011111011110110111001000101110000100110011110100100111011100010100011011001000110101111000001111000001101001111111111000000111111011010101101000000100111010100011001101000101111111010010000000000000110000011000011011101111010000010111010101010000101110110010000000001111111010111000111000101011000011011010011011101111101101010000110010010101110001010011000110100011111100110011010100110011011110110011100011011110001111100111000010100010001011100111000000000101011010011101110110110'),
	(1, '01a20423-b37e-7280-95cd-c77652a2bb35', false, B'0111100101001110101100101100111100110101010011000100010001100000011010101010101110000101000011001001111100101101111111111001011010010000100011010011001001011100111000011011011111011101111010101110010111000111010011000001001100101011101100011110010100000101101110010110011010111001001110101110111111011100010010010010011001000111111000011110101000101110101000011110011101111101011111111000000011001001100001001100000010010111000111001000000010011011111001011110110000001001010010100110100100001100000000010111011110010000011010110001000001001001001000010100010000100101000100010110111010001101000100100100000110010100000100111111001110100110101001111010010010000101000011001100010111000101001010010000101110000011101010111010011000100101100100111011110001010110000100000010100101111100010110001100111000001011101010100000001000100101011011001100000000111100110110001001011011000000011011111000000110101001010001001110101100101001100110011011101010001100011100110111101111100011101101010101100110010001010000001001111110111101'),
	(1, '01a20423-b3d0-74ed-9cc0-b4ba068b9b5d', false, B'1100100101010011101100010101100010001111100011111001111101111010001011010011110000111000011101011100111000011011111001000001001100110000010000110000110100001111111101101110000110011011010000011110111000011001110011101001010100001111011011001011011001001101111100010000101111010000111011000100100101100111111100101010111011010100101010101000110100000111000010101110011111011100001110010010100111000000011111000111100001110110001101110000011010011101011010101100011010001000011110010011101100111111001100000110110011111111100011100010000111100111010100110101010010100110111111110111100101101011101100010111001101100011000101110001010010010001100011101000101101111111010111001010111101110011010001111011000011101000011110010010011000011100110011011110011100000000001001110010101111110000110110000000011101100000101010000000101011100001010111000100001110011101101110011010100000011010100101100101010110010010000101101101001100010000100000100000100100111111010000110011111100001001101100111100010011110001111110100010110000111100'),
	(2, '01a20423-b48f-77ef-8f4a-f76ee45c2129', false, B'0111100101001110101100101100111100110101010011000100010001100000011010101010101110000101000011001001111100101101111111111001011010010000100011010011001001011100111000011011011111011101111010101110010111000111010011000001001100101011101100011110010100000101101110010110011010111001001110101110111111011100010010010010011001000111111000011110101000101110101000011110011101111101011111111000000011001001100001001100000010010111000111001000000010011011111001011110110000001001010010100110100100001100000000010111011110010000011010110001000001001001001000010100010000100101000100010110111010001101000100100100000110010100000100111111001110100110101001111010010010000101000011001100010111000101001010010000101110000011101010111010011000100101100100111011110001010110000100000010100101111100010110001100111000001011101010100000001000100101011011001100000000111100110110001001011011000000011011111000000110101001010001001110101100101001100110011011101010001100011100110111101111100011101101010101100110010001010000001001111110111101'),
	(2, '01a20423-b4cd-7504-b91d-924671e4e7b4', false, B'1100100101010011101100010101100010001111100011111001111101111010001011010011110000111000011101011100111000011011111001000001001100110000010000110000110100001111111101101110000110011011010000011110111000011001110011101001010100001111011011001011011001001101111100010000101111010000111011000100100101100111111100101010111011010100101010101000110100000111000010101110011111011100001110010010100111000000011111000111100001110110001101110000011010011101011010101100011010001000011110010011101100111111001100000110110011111111100011100010000111100111010100110101010010100110111111110111100101101011101100010111001101100011000101110001010010010001100011101000101101111111010111001010111101110011010001111011000011101000011110010010011000011100110011011110011100000000001001110010101111110000110110000000011101100000101010000000101011100001010111000100001110011101101110011010100000011010100101100101010110010010000101101101001100010000100000100000100100111111010000110011111100001001101100111100010011110001111110100010110000111100'),
	(2, '01a20423-b4cd-7504-b91d-9245a12c9f58', false, B'1010001001110000101101111110001011010101101110100001100110001001111001111011101001100001001010001011111000101110011001000101011110110011111101001111011101001011001100111110010101101011101000101111110001010011000010000101011010010001100100101101101110111110100010001010100000010110101100001110111111100011101010010011000010110100000001101110000010100011011000000110010010111100010011001101001101001001111010101101100000101100111010101100101001110110111111010010000100100100110010101111111100011000100110111101110000101000010000110000010000010101001100000101010111011101100010111000100000001110010000101110000110100100011111101100000110011111011010000001100001111011111011110111100110001101110001010111111110111100101100000110000011101111111011000111111001101001011101100010101101001001101110010101111110001101000001111000010011001010111010000100110000001111111100011000110100111101101001111110111100111110111001101100010001000010011111111101110111000011000100110111101101011001000100101000010100110100100101001001111010101100'),
	(1, '01a20423-b3d0-74ed-9cc0-b4b980676286', false, B'1010001001110000101101111110001011010101101110100001100110001001111001111011101001100001001010001011111000101110011001000101011110110011111101001111011101001011001100111110010101101011101000101111110001010011000010000101011010010001100100101101101110111110100010001010100000010110101100001110111111100011101010010011000010110100000001101110000010100011011000000110010010111100010011001101001101001001111010101101100000101100111010101100101001110110111111010010000100100100110010101111111100011000100110111101110000101000010000110000010000010101001100000101010111011101100010111000100000001110010000101110000110100100011111101100000110011111011010000001100001111011111011110111100110001101110001010111111110111100101100000110000011101111111011000111111001101001011101100010101101001001101110010101111110001101000001111000010011001010111010000100110000001111111100011000110100111101101001111110111100111110111001101100010001000010011111111101110111000011000100110111101101011001000100101000010100110100100101001001111010101100'),
	(1, '01a20423-b389-767f-be5c-542778bdb4ff', false, B'1011010101111110001100110110111100011100011100001001101010111111111000011011011101000100001001001010111010101101101110111001011001010100100001101011100101000000111111001001111111100110101010001000010000010011111000010110000010101111110011011011010111010001001111011110010010100100011010110010011110111000000110100000001101001000011011111000001100101110001010110100001011011111011011001000010001001001011110010101011110010000000111111101011011110010000010011001011000001010010010011111001101111000101010110101010110000110011110110001101000010011010111000100100001001001111010011110000011001001100111101111010101011010011111100110011110000101111010110001011000000110001011100000101000100011011011010110100110111010101010111011001100101111100000100001110001010100001001100110101011110000011110111101011000001011001100100010000011101001110011000110000000011000011110111100000011011011100100001001011110000011101101011110000111101100011011001101110011001111001100001101101101111110100111101011100110011101111100011100011110001101');


--
-- Data for Name: system_history; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: tallies; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: tally_changes; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.tally_changes VALUES
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(1, 'checkpoint', 'explicit', 1, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(1, 'session', 'auto', 1, 1, 0, false, false, NULL, 1),
	(1, 'active', 'auto', 1, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 1, false, false, NULL, 1),
	(1, 'permanent', 'explicit', 1, 1, 2, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 3, false, false, NULL, 2),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(1, NULL, NULL, 0, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'asked', 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'asked', 1),
	(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'asked', -1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(2, 'checkpoint', 'explicit', 1, 1, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(2, 'session', 'auto', 1, 1, 0, false, false, NULL, 1),
	(2, 'active', 'auto', 1, 1, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 1, false, false, NULL, 1),
	(2, 'permanent', 'explicit', 1, 1, 2, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 3, false, false, NULL, 2),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, 0, 1, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'asked', 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, -1);
INSERT INTO public.tally_changes VALUES
	(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'asked', 1),
	(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'asked', -1),
	(2, 'permanent', 'explicit', 1, 1, 3, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 1, false, false, NULL, -1),
	(2, NULL, NULL, 2, 2, 1, false, false, NULL, 1),
	(1, NULL, NULL, 2, 2, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(1, NULL, NULL, 2, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(1, NULL, NULL, 1, 1, 3, false, false, NULL, -1),
	(1, NULL, NULL, 2, 1, 3, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, 2, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 2, 2, 1, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 1, false, false, NULL, -1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, 2, 1, 0, false, false, NULL, 1),
	(1, 'checkpoint', 'explicit', 1, 1, 0, false, false, NULL, -1),
	(1, 'checkpoint', 'explicit', 2, 2, 0, false, false, NULL, 1),
	(1, 'checkpoint', 'explicit', 2, 2, 0, false, false, NULL, -1),
	(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'expired', 1),
	(1, NULL, NULL, 1, 1, 3, false, false, NULL, -1),
	(1, NULL, NULL, 2, 1, 3, false, false, NULL, 1),
	(2, NULL, NULL, 2, 1, 3, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 3, false, false, NULL, -1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(2, 'permanent', 'explicit', 2, 1, 2, false, false, NULL, 1),
	(2, NULL, NULL, 2, 1, 0, false, false, NULL, 1),
	(2, 'permanent', 'explicit', 1, 1, 2, false, false, NULL, -1),
	(1, NULL, NULL, 2, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(1, NULL, NULL, 2, 1, 0, false, false, NULL, 1),
	(1, 'permanent', 'explicit', 1, 1, 2, false, false, NULL, -1),
	(1, 'permanent', 'explicit', 2, 1, 2, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, 1, 1, 3, false, false, NULL, -1),
	(2, NULL, NULL, 2, 1, 3, false, false, NULL, 1),
	(2, NULL, NULL, 2, 2, 0, false, false, NULL, 1),
	(1, NULL, NULL, 2, 2, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(1, 'session', 'auto', 2, 2, 0, false, false, NULL, 1),
	(1, 'session', 'auto', 1, 1, 0, false, false, NULL, -1),
	(1, 'session', 'auto', 2, 2, 0, false, false, NULL, -1),
	(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'faded', 1),
	(2, 'active', 'auto', 1, 1, 0, false, false, NULL, -1),
	(2, 'active', 'auto', 2, 2, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, 2, 2, 0, false, false, NULL, 1),
	(2, NULL, NULL, 0, 1, 0, false, false, NULL, -1);
INSERT INTO public.tally_changes VALUES
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, 1),
	(2, 'checkpoint', 'explicit', 2, 2, 0, false, false, NULL, 1),
	(2, 'checkpoint', 'explicit', 1, 1, 0, false, false, NULL, -1),
	(2, 'checkpoint', 'explicit', 2, 2, 0, false, false, NULL, -1),
	(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'expired', 1),
	(1, NULL, NULL, 2, 2, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, 2, 1, 0, false, false, NULL, 1),
	(2, 'session', 'auto', 1, 1, 0, false, false, NULL, -1),
	(2, 'session', 'auto', 2, 2, 0, false, false, NULL, 1),
	(2, 'session', 'auto', 2, 2, 0, false, false, NULL, -1),
	(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'faded', 1),
	(1, NULL, NULL, 2, 1, 0, false, false, NULL, 1),
	(1, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(1, 'active', 'auto', 2, 2, 0, false, false, NULL, 1),
	(1, 'active', 'auto', 1, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, 2, 2, 0, false, false, NULL, 1),
	(2, NULL, NULL, 2, 32767, 1, false, false, NULL, 1),
	(2, NULL, NULL, 2, 2, 1, false, false, NULL, -1),
	(1, NULL, NULL, 2, 2, 0, false, false, NULL, -1),
	(1, NULL, NULL, 2, 32767, 0, false, false, NULL, 1),
	(1, NULL, NULL, 2, 1, 0, false, false, NULL, -1),
	(1, NULL, NULL, 2, 32767, 0, false, false, NULL, 1),
	(1, NULL, NULL, 2, 1, 3, false, false, NULL, -1),
	(1, NULL, NULL, 2, 32767, 3, false, false, NULL, 1),
	(1, NULL, NULL, 2, 32767, 1, false, false, NULL, 1),
	(2, NULL, NULL, 2, 32767, 0, false, false, NULL, 1),
	(1, NULL, NULL, 2, 2, 1, false, false, NULL, -1),
	(2, NULL, NULL, 2, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, 2, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, 2, 32767, 0, false, false, NULL, 1),
	(1, NULL, NULL, 2, 1, 3, false, false, NULL, -1),
	(1, NULL, NULL, 2, 32767, 3, false, false, NULL, 1),
	(2, NULL, NULL, 2, 32767, 3, false, false, NULL, 1),
	(2, NULL, NULL, 2, 1, 3, false, false, NULL, -1),
	(2, NULL, NULL, 2, 32767, 0, false, false, NULL, 1),
	(2, NULL, NULL, 2, 1, 0, false, false, NULL, -1),
	(2, 'permanent', 'explicit', 2, 1, 3, false, false, NULL, 1),
	(2, 'permanent', 'explicit', 1, 1, 3, false, false, NULL, -1),
	(1, NULL, NULL, 2, 1, 0, false, false, NULL, -1),
	(1, NULL, NULL, 2, 32767, 0, false, false, NULL, 1),
	(1, NULL, NULL, 2, 1, 0, false, false, NULL, -1),
	(1, NULL, NULL, 2, 32767, 0, false, false, NULL, 1),
	(2, NULL, NULL, 2, 32767, 0, false, false, NULL, 1),
	(2, NULL, NULL, 2, 1, 3, false, false, NULL, -1),
	(2, NULL, NULL, 2, 2, 0, false, false, NULL, -1),
	(2, NULL, NULL, 2, 32767, 3, false, false, NULL, 1),
	(1, NULL, NULL, 2, 2, 0, false, false, NULL, -1);
INSERT INTO public.tally_changes VALUES
	(1, NULL, NULL, 2, 32767, 0, false, false, NULL, 1),
	(2, 'active', 'auto', 2, 32767, 0, false, false, NULL, 1),
	(1, NULL, NULL, 0, 1, 0, false, false, NULL, -1),
	(2, 'active', 'auto', 2, 2, 0, false, false, NULL, -1),
	(1, NULL, NULL, 1, 2, 0, false, false, NULL, 1),
	(2, 'active', 'auto', 2, 32767, 0, false, false, NULL, -1),
	(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'faded', 1),
	(2, NULL, NULL, 2, 2, 0, false, false, NULL, -1),
	(2, NULL, NULL, 2, 32767, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, 1, 2, 0, false, false, NULL, 1),
	(1, NULL, NULL, 2, 2, 0, false, false, NULL, -1),
	(1, NULL, NULL, 2, 32767, 0, false, false, NULL, 1),
	(2, NULL, NULL, 2, 1, 0, false, false, NULL, -1),
	(2, NULL, NULL, 2, 32767, 0, false, false, NULL, 1),
	(1, NULL, NULL, 2, 1, 0, false, false, NULL, -1),
	(1, NULL, NULL, 2, 32767, 0, false, false, NULL, 1),
	(1, 'active', 'auto', 2, 32767, 0, false, false, NULL, 1),
	(1, 'active', 'auto', 2, 2, 0, false, false, NULL, -1),
	(1, 'active', 'auto', 2, 32767, 0, false, false, NULL, -1),
	(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'faded', 1),
	(2, NULL, NULL, 2, 2, 0, false, false, NULL, -1),
	(2, NULL, NULL, 2, 32767, 0, false, false, NULL, 1),
	(1, NULL, NULL, 2, 32767, 0, false, false, NULL, -1),
	(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'culled', 1),
	(1, NULL, NULL, 1, 2, 0, false, false, NULL, -1),
	(1, NULL, NULL, 2, 4, 0, false, false, NULL, 1),
	(2, NULL, NULL, 2, 4, 0, false, false, NULL, 1),
	(2, NULL, NULL, 1, 2, 0, false, false, NULL, -1);


--
-- Data for Name: tally_history; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: vectors; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.vectors VALUES
	(1, '01a20423-b355-7068-9994-4457ec34239c', 256, '[0.10845947,0.10845947,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.1899414,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,0.1899414,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,0.1899414,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.1899414,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.1899414,0.1899414,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.24768066,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,0.10845947,-0.030731201,-0.030731201,0.10845947,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201]'),
	(1, '01a20423-b2ff-711a-a77d-aee338569bba', 256, '[-0.07183838,-0.07183838,-0.07183838,0.15148926,-0.07183838,-0.07183838,0.15148926,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,0.15148926,-0.07183838,-0.07183838,-0.07183838,0.5053711,-0.07183838,-0.07183838,0.15148926,-0.07183838,0.15148926,-0.07183838,-0.07183838,-0.07183838,-0.07183838,0.15148926,-0.07183838,0.15148926,-0.07183838,-0.07183838,0.15148926,0.15148926,-0.07183838,0.15148926,-0.07183838,0.15148926,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,0.37451172,0.15148926,-0.07183838,-0.07183838,0.15148926,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,0.15148926,0.15148926,-0.07183838,-0.07183838,-0.07183838,0.15148926]'),
	(1, '01a20423-b3e5-7604-b7a2-10854fa83936', 256, '[-0.022949219,-0.022949219,-0.022949219,0.15966797,0.26660156,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,0.15966797,-0.022949219,0.26660156,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,0.15966797]'),
	(2, '01a20423-b472-735f-bab8-f863f567406b', 256, '[0.10845947,0.10845947,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.1899414,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,0.1899414,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,0.1899414,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.1899414,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.1899414,0.1899414,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.24768066,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,0.10845947,-0.030731201,-0.030731201,0.10845947,0.10845947,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,-0.030731201,0.10845947,-0.030731201]'),
	(2, '01a20423-b465-7015-9454-f7f09a8b6649', 256, '[-0.07183838,-0.07183838,-0.07183838,0.15148926,-0.07183838,-0.07183838,0.15148926,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,0.15148926,-0.07183838,-0.07183838,-0.07183838,0.5053711,-0.07183838,-0.07183838,0.15148926,-0.07183838,0.15148926,-0.07183838,-0.07183838,-0.07183838,-0.07183838,0.15148926,-0.07183838,0.15148926,-0.07183838,-0.07183838,0.15148926,0.15148926,-0.07183838,0.15148926,-0.07183838,0.15148926,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,0.37451172,0.15148926,-0.07183838,-0.07183838,0.15148926,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,-0.07183838,0.15148926,0.15148926,-0.07183838,-0.07183838,-0.07183838,0.15148926]'),
	(2, '01a20423-b4f9-7259-8076-959661fe4c4a', 256, '[-0.022949219,-0.022949219,-0.022949219,0.15966797,0.26660156,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,0.15966797,-0.022949219,0.26660156,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,-0.022949219,-0.022949219,-0.022949219,-0.022949219,-0.022949219,0.15966797,0.15966797]'),
	(2, 'bc86aa09-c226-4c8c-a49e-ae8aaf91bb51', 256, '[-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,0.18200684,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,0.18200684,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,-0.021453857,0.18200684,-0.021453857,-0.021453857,-0.021453857]');


--
-- Name: erasures_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.erasures_id_seq', 2, true);


--
-- Name: events_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.events_id_seq', 13, true);


--
-- Name: namespaces_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.namespaces_id_seq', 2, true);


--
-- Name: relations_id_seq; Type: SEQUENCE SET; Schema: public; Owner: -
--

SELECT pg_catalog.setval('public.relations_id_seq', 4, true);


--
-- Name: activity activity_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.activity
    ADD CONSTRAINT activity_pkey PRIMARY KEY (namespace, fact);


--
-- Name: api_keys api_keys_digest_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_digest_key UNIQUE (digest);


--
-- Name: api_keys api_keys_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (namespace, id);


--
-- Name: contradictions contradictions_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.contradictions
    ADD CONSTRAINT contradictions_pkey PRIMARY KEY (namespace, fact, other);


--
-- Name: decay_allowances decay_allowances_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.decay_allowances
    ADD CONSTRAINT decay_allowances_pkey PRIMARY KEY (run, namespace);


--
-- Name: decay_parts decay_parts_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.decay_parts
    ADD CONSTRAINT decay_parts_pkey PRIMARY KEY (run, segment, part);


--
-- Name: decay_runs decay_runs_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.decay_runs
    ADD CONSTRAINT decay_runs_pkey PRIMARY KEY (id);


--
-- Name: decay_runs decay_runs_work_slot_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.decay_runs
    ADD CONSTRAINT decay_runs_work_slot_key UNIQUE (work, slot);


--
-- Name: documents documents_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.documents
    ADD CONSTRAINT documents_pkey PRIMARY KEY (namespace, path);


--
-- Name: embedders embedders_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.embedders
    ADD CONSTRAINT embedders_pkey PRIMARY KEY (only_row);


--
-- Name: erasures erasures_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.erasures
    ADD CONSTRAINT erasures_pkey PRIMARY KEY (id);


--
-- Name: events events_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (namespace, fact, id);


--
-- Name: facts facts_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.facts
    ADD CONSTRAINT facts_pkey PRIMARY KEY (namespace, id);


--
-- Name: fading_rules fading_rules_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.fading_rules
    ADD CONSTRAINT fading_rules_pkey PRIMARY KEY (only_row);


--
-- Name: forgotten_hashes forgotten_hashes_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forgotten_hashes
    ADD CONSTRAINT forgotten_hashes_pkey PRIMARY KEY (namespace, digest);


--
-- Name: janitors janitors_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.janitors
    ADD CONSTRAINT janitors_pkey PRIMARY KEY (namespace);


--
-- Name: languages languages_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.languages
    ADD CONSTRAINT languages_pkey PRIMARY KEY (only_row);


--
-- Name: lexemes lexemes_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.lexemes
    ADD CONSTRAINT lexemes_pkey PRIMARY KEY (namespace, lexeme);


--
-- Name: likenesses likenesses_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.likenesses
    ADD CONSTRAINT likenesses_pkey PRIMARY KEY (namespace, fact, other);


--
-- Name: links links_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.links
    ADD CONSTRAINT links_pkey PRIMARY KEY (namespace, source, target, type);


--
-- Name: namespaces namespaces_name_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.namespaces
    ADD CONSTRAINT namespaces_name_key UNIQUE (name);


--
-- Name: namespaces namespaces_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.namespaces
    ADD CONSTRAINT namespaces_pkey PRIMARY KEY (id);


--
-- Name: relations relations_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.relations
    ADD CONSTRAINT relations_pkey PRIMARY KEY (namespace, id);


--
-- Name: signatures signatures_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.signatures
    ADD CONSTRAINT signatures_pkey PRIMARY KEY (namespace, fact);


--
-- Name: system_history system_history_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.system_history
    ADD CONSTRAINT system_history_pkey PRIMARY KEY (at);


--
-- Name: tallies tallies_namespace_decay_class_decay_class_source_tier_fidel_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tallies
    ADD CONSTRAINT tallies_namespace_decay_class_decay_class_source_tier_fidel_key UNIQUE NULLS NOT DISTINCT (namespace, decay_class, decay_class_source, tier, fidelity, branch, held, stale, forgotten_reason);


--
-- Name: tally_history tally_history_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tally_history
    ADD CONSTRAINT tally_history_pkey PRIMARY KEY (namespace, at);


--
-- Name: vectors vectors_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.vectors
    ADD CONSTRAINT vectors_pkey PRIMARY KEY (namespace, fact);


--
-- Name: activity_due; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX activity_due ON public.activity USING btree (segment, due_at);


--
-- Name: activity_episodes; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX activity_episodes ON public.activity USING btree (namespace, occurred) WHERE ((branch = 1) AND (outrun_at IS NULL));


--
-- Name: activity_held; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX activity_held ON public.activity USING btree (namespace, fact) WHERE held;


--
-- Name: activity_pending; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX activity_pending ON public.activity USING btree (namespace, fact) WHERE (fidelity = 0);


--
-- Name: activity_pinned; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX activity_pinned ON public.activity USING btree (namespace, pinned_until) WHERE (pinned_until IS NOT NULL);


--
-- Name: activity_uncompared; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX activity_uncompared ON public.activity USING btree (namespace) WHERE ((NOT compared) AND (fidelity <> 0));


--
-- Name: contradictions_other; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX contradictions_other ON public.contradictions USING btree (namespace, other);


--
-- Name: decay_runs_started; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX decay_runs_started ON public.decay_runs USING btree (started_at DESC);


--
-- Name: events_stale; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX events_stale ON public.events USING btree (namespace, at) WHERE (what = 'stale'::text);


--
-- Name: facts_chunks; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX facts_chunks ON public.facts USING btree (namespace, "left"(source, 200)) WHERE (kind = 'chunk'::text);


--
-- Name: facts_culled; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX facts_culled ON public.facts USING btree (namespace, forgotten_at) WHERE (forgotten_reason = ANY (ARRAY['culled'::text, 'aged'::text]));


--
-- Name: facts_entities; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX facts_entities ON public.facts USING btree (namespace, "left"(lower(entity), 200), created_at) WHERE ((entity IS NOT NULL) AND (forgotten_at IS NULL) AND (superseded_at IS NULL));


--
-- Name: facts_forgotten; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX facts_forgotten ON public.facts USING btree (forgotten_at) WHERE (forgotten_at IS NOT NULL);


--
-- Name: facts_items; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX facts_items ON public.facts USING btree (namespace, "left"(entity, 200) COLLATE "C") WHERE ((kind = 'item'::text) AND (forgotten_at IS NULL) AND (superseded_at IS NULL));


--
-- Name: facts_neighbours; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX facts_neighbours ON public.facts USING btree (namespace, session, turn) WHERE (session IS NOT NULL);


--
-- Name: facts_said_once; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX facts_said_once ON public.facts USING btree (namespace, hash) WHERE ((forgotten_at IS NULL) AND (superseded_at IS NULL));


--
-- Name: facts_search; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX facts_search ON public.facts USING gin (search) WITH (fastupdate=off);


--
-- Name: facts_topics; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX facts_topics ON public.facts USING btree (namespace, "left"(lower(entity), 200), "left"(lower(key), 200), created_at) WHERE ((entity IS NOT NULL) AND (forgotten_at IS NULL) AND (superseded_at IS NULL));


--
-- Name: forgotten_hashes_fact; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX forgotten_hashes_fact ON public.forgotten_hashes USING btree (namespace, fact);


--
-- Name: likenesses_other; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX likenesses_other ON public.likenesses USING btree (namespace, other);


--
-- Name: links_source; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX links_source ON public.links USING btree (namespace, source, strength DESC);


--
-- Name: links_target; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX links_target ON public.links USING btree (namespace, target, strength DESC);


--
-- Name: relations_once; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX relations_once ON public.relations USING btree (namespace, lower(source), lower(target), type);


--
-- Name: relations_target; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX relations_target ON public.relations USING btree (namespace, lower(target));


--
-- Name: signatures_scan; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX signatures_scan ON public.signatures USING btree (namespace, live) INCLUDE (fact, signature);


--
-- Name: tally_changes_namespace; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX tally_changes_namespace ON public.tally_changes USING btree (namespace);


--
-- Name: facts erased; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER erased AFTER DELETE ON public.facts REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.note_erasures();


--
-- Name: activity tally_added; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER tally_added AFTER INSERT ON public.activity REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.tally_activity_added();


--
-- Name: facts tally_added; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER tally_added AFTER INSERT ON public.facts FOR EACH ROW WHEN (((new.forgotten_reason IS NOT NULL) AND (new.superseded_at IS NULL))) EXECUTE FUNCTION public.tally_tombstone_added();


--
-- Name: activity tally_changed; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER tally_changed AFTER UPDATE ON public.activity REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.tally_activity_changed();


--
-- Name: facts tally_changed; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER tally_changed AFTER UPDATE ON public.facts REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.tally_tombstones_changed();


--
-- Name: activity tally_deleted; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER tally_deleted AFTER DELETE ON public.activity FOR EACH ROW WHEN ((NOT old.retired)) EXECUTE FUNCTION public.tally_activity_deleted();


--
-- Name: facts tally_deleted; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER tally_deleted AFTER DELETE ON public.facts REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.tally_tombstones_deleted();


--
-- Name: activity activity_namespace_fact_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.activity
    ADD CONSTRAINT activity_namespace_fact_fkey FOREIGN KEY (namespace, fact) REFERENCES public.facts(namespace, id) ON DELETE CASCADE;


--
-- Name: api_keys api_keys_namespace_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_namespace_fkey FOREIGN KEY (namespace) REFERENCES public.namespaces(id);


--
-- Name: contradictions contradictions_namespace_fact_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.contradictions
    ADD CONSTRAINT contradictions_namespace_fact_fkey FOREIGN KEY (namespace, fact) REFERENCES public.facts(namespace, id) ON DELETE CASCADE;


--
-- Name: contradictions contradictions_namespace_other_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.contradictions
    ADD CONSTRAINT contradictions_namespace_other_fkey FOREIGN KEY (namespace, other) REFERENCES public.facts(namespace, id) ON DELETE CASCADE;


--
-- Name: decay_allowances decay_allowances_namespace_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.decay_allowances
    ADD CONSTRAINT decay_allowances_namespace_fkey FOREIGN KEY (namespace) REFERENCES public.namespaces(id);


--
-- Name: decay_allowances decay_allowances_run_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.decay_allowances
    ADD CONSTRAINT decay_allowances_run_fkey FOREIGN KEY (run) REFERENCES public.decay_runs(id) ON DELETE CASCADE;


--
-- Name: decay_parts decay_parts_run_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.decay_parts
    ADD CONSTRAINT decay_parts_run_fkey FOREIGN KEY (run) REFERENCES public.decay_runs(id) ON DELETE CASCADE;


--
-- Name: decay_runs decay_runs_namespace_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.decay_runs
    ADD CONSTRAINT decay_runs_namespace_fkey FOREIGN KEY (namespace) REFERENCES public.namespaces(id);


--
-- Name: documents documents_namespace_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.documents
    ADD CONSTRAINT documents_namespace_fkey FOREIGN KEY (namespace) REFERENCES public.namespaces(id);


--
-- Name: events events_namespace_fact_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_namespace_fact_fkey FOREIGN KEY (namespace, fact) REFERENCES public.facts(namespace, id) ON DELETE CASCADE;


--
-- Name: facts facts_namespace_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.facts
    ADD CONSTRAINT facts_namespace_fkey FOREIGN KEY (namespace) REFERENCES public.namespaces(id);


--
-- Name: forgotten_hashes forgotten_hashes_namespace_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.forgotten_hashes
    ADD CONSTRAINT forgotten_hashes_namespace_fkey FOREIGN KEY (namespace) REFERENCES public.namespaces(id);


--
-- Name: janitors janitors_namespace_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.janitors
    ADD CONSTRAINT janitors_namespace_fkey FOREIGN KEY (namespace) REFERENCES public.namespaces(id);


--
-- Name: lexemes lexemes_namespace_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.lexemes
    ADD CONSTRAINT lexemes_namespace_fkey FOREIGN KEY (namespace) REFERENCES public.namespaces(id);


--
-- Name: likenesses likenesses_namespace_fact_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.likenesses
    ADD CONSTRAINT likenesses_namespace_fact_fkey FOREIGN KEY (namespace, fact) REFERENCES public.facts(namespace, id) ON DELETE CASCADE;


--
-- Name: likenesses likenesses_namespace_other_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.likenesses
    ADD CONSTRAINT likenesses_namespace_other_fkey FOREIGN KEY (namespace, other) REFERENCES public.facts(namespace, id) ON DELETE CASCADE;


--
-- Name: links links_namespace_source_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.links
    ADD CONSTRAINT links_namespace_source_fkey FOREIGN KEY (namespace, source) REFERENCES public.facts(namespace, id) ON DELETE CASCADE;


--
-- Name: links links_namespace_target_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.links
    ADD CONSTRAINT links_namespace_target_fkey FOREIGN KEY (namespace, target) REFERENCES public.facts(namespace, id) ON DELETE CASCADE;


--
-- Name: relations relations_namespace_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.relations
    ADD CONSTRAINT relations_namespace_fkey FOREIGN KEY (namespace) REFERENCES public.namespaces(id);


--
-- Name: signatures signatures_namespace_fact_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.signatures
    ADD CONSTRAINT signatures_namespace_fact_fkey FOREIGN KEY (namespace, fact) REFERENCES public.facts(namespace, id) ON DELETE CASCADE;


--
-- Name: tally_history tally_history_namespace_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.tally_history
    ADD CONSTRAINT tally_history_namespace_fkey FOREIGN KEY (namespace) REFERENCES public.namespaces(id);


--
-- Name: vectors vectors_namespace_fact_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.vectors
    ADD CONSTRAINT vectors_namespace_fact_fkey FOREIGN KEY (namespace, fact) REFERENCES public.facts(namespace, id) ON DELETE CASCADE;


--
-- PostgreSQL database dump complete
--


