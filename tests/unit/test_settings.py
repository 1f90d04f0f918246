"""Settings: read once, unknown variables and wrong values are reported with the allowed ones."""

from pathlib import Path
from urllib.parse import quote

import pytest
from kombu import Connection
from pydantic import ValidationError

from workers.errors import SettingsError
from workers.queues import configuration
from workers.settings import Settings, differences


def read(**variables: str) -> Settings:
    return Settings.from_environment(variables)


def refused(**variables: str) -> str:
    with pytest.raises(SettingsError) as refusal:
        read(**variables)
    return str(refusal.value)


def test_nothing_set_gives_the_documented_defaults() -> None:
    given = read(PATH="/usr/bin", HOME="/root")

    assert given == Settings()
    assert (given.tier, given.embedder, given.max_vector_dim, given.min_vector_dim) == ("hybrid", None, 1536, 64)
    assert (given.decay_threads, given.decay_ratio, given.decay_sleep_ms) == (3, 1.0, 200.0)
    assert (given.cold_threshold, given.summary_layers, given.forget_limit) == (0.25, 3, 0.2)
    assert (given.confidence_half_life, given.cull_floor, given.max_text) == (180.0, 0.1, 65_536)
    assert (given.hygiene, given.confidence_decay, given.episodic_ttl, given.episodic_operator) == (True,) * 3 + ("OR",)
    assert (given.persistent_turns, given.persistent_days, given.permanent_stale_days) == (500, 90.0, 180.0)
    assert (given.decay_reinforce_on_query, given.regeneration_enabled) == (True, True)


def test_each_field_is_read_from_the_variable_of_its_name() -> None:
    given = read(
        EBB_DATABASE_URL="postgresql://db/ebb",
        EBB_HOME="/srv/ebb",
        EBB_DECAY_THREADS="5",
        EBB_DECAY_RATIO="0.03",
        EBB_REGENERATION_ENABLED="false",
        EBB_RANKING="documented",
    )

    assert given == Settings(
        database_url="postgresql://db/ebb",
        home=Path("/srv/ebb"),
        decay_threads=5,
        decay_ratio=0.03,
        regeneration_enabled=False,
        ranking="documented",
    )


def test_an_empty_variable_counts_as_not_set() -> None:
    assert read(EBB_SEGMENTS="", EBB_DATABASE_URL="", EBB_EMBEDDING_URL=" ") == Settings()


def test_blanks_around_a_value_are_left_out_such_as_the_line_ends_of_windows() -> None:
    given = read(
        EBB_TIER="deep\r", EBB_EMBEDDING_MODEL=" nomic-embed-text\r", EBB_HYGIENE="false\r", OPENAI_API_KEY="secret\r"
    )
    assert (given.embedding_model, given.hygiene, given.embedding_key) == ("nomic-embed-text", False, "secret")


def test_the_process_environment_is_read_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EBB_SEGMENTS", "8")

    assert Settings.from_environment().segments == 8


@pytest.mark.parametrize(
    ("tier", "embedder"), [("fast", "hashing"), ("hybrid", None), ("smart", "local"), ("deep", "openai")]
)
def test_the_tier_chooses_the_embedder(tier: str, embedder: str | None) -> None:
    assert read(EBB_TIER=tier).embedder == embedder


def test_an_embedder_of_its_own_overrides_the_tiers() -> None:
    assert read(EBB_TIER="deep", EBB_EMBEDDER="hashing").embedder == "hashing"


@pytest.mark.parametrize("chosen", [{}, {"EBB_EMBEDDER": "static"}, {"EBB_TIER": "fast"}])
def test_settings_that_the_embedder_would_ignore_are_refused(chosen: dict[str, str]) -> None:
    assert refused(EBB_EMBEDDING_MODEL="nomic-embed-text", **chosen) == (
        "EBB_EMBEDDING_MODEL is for the embedder local or openai alone: set EBB_EMBEDDER to that, "
        "or unset EBB_EMBEDDING_MODEL."
    )
    assert refused(EBB_EMBEDDING_URL="http://localhost/v1", **chosen) == (
        "EBB_EMBEDDING_URL is for the embedder openai alone: set EBB_EMBEDDER to that, or unset EBB_EMBEDDING_URL."
    )


def test_the_sources_name_of_the_cold_threshold_is_accepted() -> None:
    assert read(EBB_DECAY_COLD_THRESHOLD="0.35").cold_threshold == 0.35
    assert read(EBB_DECAY_COLD_THRESHOLD="0.35", EBB_COLD_THRESHOLD="0.15").cold_threshold == 0.15


def test_the_key_of_openai_is_used_where_no_other_is_set() -> None:
    assert read(OPENAI_API_KEY="theirs").embedding_key == "theirs"
    assert read(OPENAI_API_KEY="theirs", EBB_EMBEDDING_KEY="ours").embedding_key == "ours"


def test_the_key_of_openai_is_for_openai_alone() -> None:
    given = read(OPENAI_API_KEY="theirs", EBB_LLM_URL="http://localhost/v1")

    assert (given.embedding_key, given.llm_key, given.rerank_key) == ("theirs", "", "")


def test_a_key_is_not_shown() -> None:
    assert "secret" not in repr(read(EBB_EMBEDDING_KEY="secret", EBB_LLM_KEY="secret", EBB_RERANK_KEY="secret"))


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
@pytest.mark.parametrize(
    "options",
    ["password=secret", "bogus=secret", "socket_timeout=5&x=secret", "decode_responses=1", "ssl_cert_reqs=secret"],
)
def test_options_of_redis_that_cannot_be_used_are_named_without_their_values(scheme: str, options: str) -> None:
    with pytest.raises(SettingsError, match=r"^EBB_REDIS_URL has options that cannot be used") as caught:
        read(EBB_REDIS_URL=f"{scheme}://127.0.0.1:6379/0?{options}")
    assert "secret" not in str(caught.value)
    assert options.partition("=")[0] in str(caught.value)


@pytest.mark.parametrize("option", ["ssl_ca_certs", "ssl_certfile", "ssl_keyfile"])
def test_a_file_of_redis_that_is_missing_is_named(option: str) -> None:
    assert refused(EBB_REDIS_URL=f"rediss://:secret@127.0.0.1/0?{option}=/missing.pem") == (
        f"EBB_REDIS_URL names a file that cannot be read, {option}=/missing.pem; give its full path."
    )


def test_a_wrong_address_with_a_password_is_not_shown() -> None:
    with pytest.raises(SettingsError, match=r"^EBB_FLOWER_URL is not allowed: give an address") as caught:
        read(EBB_FLOWER_URL="mira:secret@flower.example.org")
    assert "secret" not in str(caught.value)


def test_an_address_that_may_have_a_password_is_not_shown() -> None:
    postgres, redis = "postgresql://ebb:secret@127.0.0.1/ebb", "redis://:secret@127.0.0.1:6379/0"
    given = {f"EBB_{name}DATABASE_URL": postgres for name in ("", "DIRECT_", "READ_")}
    assert "secret" not in repr(read(EBB_REDIS_URL=redis, EBB_BROKERS=redis, **given))


def test_no_llm_is_asked_by_default() -> None:
    given = read(EBB_LLM_KEY="key")

    assert (given.classify_before_write, given.prune_by_llm, given.prune_threshold) == (False, False, 20)


@pytest.mark.parametrize("wish", ["EBB_CLASSIFY_BEFORE_WRITE", "EBB_EXTRACT", "EBB_PRUNE_BY_LLM"])
def test_an_llm_feature_needs_an_endpoint_or_key(wish: str) -> None:
    assert refused(**{wish: "true"}).endswith("or EBB_LLM_URL for another server.")
    for given in ({"EBB_LLM_KEY": "key"}, {"OPENAI_API_KEY": "key"}, {"EBB_LLM_URL": "http://localhost/v1"}):
        assert read(**{wish: "true"}, **given)


@pytest.mark.parametrize("name", ["EBB_DECAY_INTERVAL_MINUTES", "EBB_FOLDER_MINUTES"])
def test_an_interval_that_beat_would_take_for_none_is_refused(name: str) -> None:
    assert "greater than or equal to 0.1" in refused(**{name: "1e-9"})


def test_an_unknown_variable_is_refused() -> None:
    assert refused(EBB_TEIR="smart") == (
        "EBB_TEIR is no setting of Ebb. Correct its name or unset it; the manual lists them all."
    )


def test_variables_of_other_programs_are_ignored() -> None:
    assert read(OM_TIER="smart", EBBING="1", ebb_tier="smart") == Settings()


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("EBB_TIER", "SMART", "'fast', 'smart', 'deep' or 'hybrid'"),
        ("EBB_EMBEDDER", "word2vec", "'static', 'hashing', 'onnx', 'local' or 'openai'"),
        ("EBB_SEGMENTS", "many", "valid integer"),
        ("EBB_SEGMENTS", "0", "greater than or equal to 1"),
        ("EBB_SEGMENTS", "1.5", "valid integer"),
        ("EBB_COLD_THRESHOLD", "1.1", "less than or equal to 1"),
        ("EBB_COLD_THRESHOLD", "-0.1", "greater than or equal to 0"),
        ("EBB_SUMMARY_LAYERS", "4", "less than or equal to 3"),
        ("EBB_DECAY_RATIO", "0", "greater than 0"),
        ("EBB_CONFIDENCE_HALF_LIFE", "0", "greater than 0"),
        ("EBB_CULL_FLOOR", "1", "less than 1"),
        ("EBB_REGENERATION_ENABLED", "maybe", "true or false"),
        ("EBB_HYGIENE_SCHEDULE", "oncapture", "'onConsolidation', 'onCapture' or 'manual'"),
        ("EBB_CONSOLIDATE_APPLY", "maybe", "true or false"),
        ("EBB_RANKING", "best", "'default' or 'documented'"),
        ("EBB_LOG_LEVEL", "loud", "'debug', 'info', 'warning' or 'error'"),
    ],
)
def test_an_invalid_value_is_refused_with_the_allowed_ones(variable: str, value: str, allowed: str) -> None:
    message = refused(**{variable: value})

    assert message.startswith(f"{variable}={value!r} is not allowed: input should be ")
    assert allowed in message


def test_a_namespace_that_is_no_name_is_refused_in_plain_words() -> None:
    assert refused(EBB_NAMESPACE="a b").startswith(
        "EBB_NAMESPACE='a b' is not allowed: is no name; use up to 128 letters, digits"
    )


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize("field", [name for name, field in Settings.model_fields.items() if field.annotation is float])
def test_no_setting_is_infinite_or_nan(field: str, value: str) -> None:
    assert refused(**{f"EBB_{field.upper()}": value}).startswith(f"EBB_{field.upper()}={value!r} is not allowed")


def test_all_wrong_variables_are_named_at_once() -> None:
    lines = refused(EBB_SEGMENTS="0", EBB_TEIR="smart", EBB_MAX_TEXT="-1").splitlines()

    assert {line.split("=")[0].split()[0] for line in lines} == {"EBB_SEGMENTS", "EBB_TEIR", "EBB_MAX_TEXT"}


def test_pooling_cannot_stop_above_the_full_dimensions() -> None:
    assert refused(EBB_MIN_VECTOR_DIM="128", EBB_MAX_VECTOR_DIM="64") == (
        "EBB_MIN_VECTOR_DIM=128 is not allowed: it exceeds EBB_MAX_VECTOR_DIM=64; lower the one or raise the other."
    )


@pytest.mark.parametrize("url", ["None", "localhost:6379", "redis://localhost/first", "http://localhost:6379/0"])
def test_an_invalid_redis_url_is_refused_without_quoting_it(url: str) -> None:
    said = refused(EBB_REDIS_URL=url)
    assert said.startswith("EBB_REDIS_URL is no address of a Redis; give redis://")
    assert url not in said.replace("redis://", "")


def test_each_group_of_shards_has_a_broker_and_a_namespace_one_of_them() -> None:
    given = read(EBB_SHARDS="4", EBB_BROKERS="redis://a/0, redis://b/0", EBB_REDIS_URL="redis://b/0")
    assert given.broker_urls == ["redis://a/0", "redis://b/0"]
    assert given.group == 1
    assert {given.broker_of(name) for name in ("ann", "zoe")} == {*given.broker_urls}
    assert read(EBB_REDIS_URL="redis://b/0").broker_of("ann") == "redis://b/0"


@pytest.mark.parametrize(
    ("brokers", "fault"),
    [
        ("redis://a redis://b redis://c", "EBB_BROKERS names 3 servers for EBB_SHARDS=4: name each once"),
        ("redis://a redis://a", "EBB_BROKERS names 2 servers for EBB_SHARDS=4: name each once"),
        ("redis://a redis://:secret@c", "EBB_REDIS_URL is not in EBB_BROKERS"),
        ("redis://a amqp://:secret@b", "EBB_BROKERS is no address of a Redis"),
    ],
)
def test_brokers_that_fit_no_shards_are_refused_without_quoting_them(brokers: str, fault: str) -> None:
    said = refused(EBB_SHARDS="4", EBB_BROKERS=brokers, EBB_REDIS_URL="redis://b")
    assert said.startswith(fault)
    assert "secret" not in said


@pytest.mark.parametrize(
    "url",
    ["redis://", "redis://:secret@[::1]:6379/3", f"rediss://u:p@h?ssl_cert_reqs=none&ssl_ca_certs={quote(__file__)}"],
)
def test_urls_that_celery_accepts_are_accepted(url: str) -> None:
    assert read(EBB_REDIS_URL=url).redis_url == url
    assert Connection(configuration(url)["broker_url"])


def test_a_url_that_libpq_cannot_parse_is_refused_without_quoting_it() -> None:
    assert refused(EBB_DATABASE_URL="secret").startswith("EBB_DATABASE_URL cannot be read; give postgresql://")
    for given in ("secret", "postgresql://ebb:of@secret@host/ebb"):
        assert "secret" not in refused(EBB_DATABASE_URL=given)
    assert read(EBB_DATABASE_URL="host=/run/postgres dbname=ebb").database_url


def test_settings_do_not_change() -> None:
    given = read()

    with pytest.raises(ValidationError, match="frozen"):
        given.segments = 3  # type: ignore[misc]


def test_what_workers_should_share_is_compared_and_what_is_of_each_is_not() -> None:
    ours = Settings(cull_floor=0.2, history_days=30.0, log_level="debug", decay_batch=5, port=80).shared
    assert ours == {"EBB_CULL_FLOOR": 0.2, "EBB_HISTORY_DAYS": 30.0}
    hosts = {f"w{n}@h": {} for n in range(5)}
    assert differences(hosts) == differences({"a@h": ours, "b@h": ours}) == differences({}) == []
    assert differences(hosts | {"z@h": ours}) == [
        "EBB_HISTORY_DAYS is empty at w0@h and w1@h and w2@h and 2 more, 30.0 at z@h",
        "EBB_CULL_FLOOR is 0.1 at w0@h and w1@h and w2@h and 2 more, 0.2 at z@h",
    ]


def test_what_a_context_shows_is_shared_and_so_is_whether_questions_are_noted() -> None:
    own = {"EBB_CONTEXT_ORDER": "stable", "EBB_LAST_CONTEXTS_HOURS": "0", "EBB_TOKENIZER": "o200k_base"}
    assert Settings.from_environment(own).shared.keys() == own.keys()


def test_what_a_worker_does_not_say_is_not_compared() -> None:
    workers = {"a@h": {"the embedder": "static"}, "b@h": {"the embedder": "hashing"}, "c@h": {}}
    assert differences(workers) == ["the embedder is static at a@h, hashing at b@h"]


def test_every_setting_has_a_description() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


@pytest.mark.parametrize("when", ["30 4 * * 0", "30 4 * * 7", "*/15 0-6 1,15 * mon-fri", "0 0 1 jan *"])
def test_a_schedule_has_the_five_fields_of_cron(when: str) -> None:
    assert read(EBB_RELATION_SCHEDULE=when).relation_schedule == when


@pytest.mark.parametrize(
    ("when", "fault"),
    [
        ("30 4 * *", "it has not five fields"),
        ("@daily", "it has not five fields"),
        ("30 4 * * 8", "8 > 6"),
        ("61 4 * * 0", "61 > 59"),
        ("0 0 31 2 *", "never occurs"),
        ("x 4 * * 0", "'x'"),
    ],
)
def test_an_invalid_schedule_is_refused_with_the_reason_and_an_example(when: str, fault: str) -> None:
    said = refused(EBB_RELATION_SCHEDULE=when)
    assert said.startswith(f"EBB_RELATION_SCHEDULE={when!r} is not allowed")
    assert fault in said
    assert "such as 30 4 * * 0" in said


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc", "/etc/passwd"])
def test_a_time_zone_that_does_not_exist_is_refused(zone: str) -> None:
    assert "Europe/Berlin" in refused(EBB_TIMEZONE=zone)


def test_a_variable_that_ends_in_file_names_a_file_with_the_setting(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("redis://:secret@redis:6379/0\n")
    given = {"EBB_REDIS_URL_FILE": str(tmp_path / "url")}
    assert Settings.from_environment(given).redis_url == "redis://:secret@redis:6379/0"
    for plain in ("redis://other:6379/0", ""):
        assert Settings.from_environment(given | {"EBB_REDIS_URL": plain}).redis_url == plain
    with pytest.raises(SettingsError, match="EBB_LLM_KEY_FILE='/missing/key' cannot be read"):
        Settings.from_environment({"EBB_LLM_KEY_FILE": "/missing/key"})
    (tmp_path / "url").write_text("\n")
    with pytest.raises(SettingsError, match=r"EBB_REDIS_URL_FILE='.*' is empty: write the value into it"):
        Settings.from_environment(given)


@pytest.mark.parametrize(
    "url", ["hooks/secret", "ftp://a/secret", "http://", "http://[::1/secret", "http://a:b/c", "https://a b/"]
)
def test_an_address_for_notices_that_is_none_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^EBB_ENDING_WEBHOOK is no address; give one such as") as refused:
        read(EBB_ENDING_WEBHOOK=url)
    assert url not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("EBB_FLOWER_URL", "flower", "give an address such as https://flower.example.org"),
        ("EBB_VECTOR_LABEL", "a]b", "give up to 32 letters, digits"),
        ("EBB_HOST", "127.0.0.1,::1", "give the name or address of one network interface"),
        ("EBB_HOST", "a..b", "give the name or address of one network interface"),
        ("EBB_LANGUAGE", "English!", "give a text search configuration of PostgreSQL, such as english"),
    ],
)
def test_a_value_of_another_form_is_refused_with_the_form_in_words(name: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError, match=f"^{name}='.*' is not allowed: {said}"):
        read(**{name: value})
