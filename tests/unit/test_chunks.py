"""Chunks of Markdown: they cover the text, none is too long, and they respect headings and blocks."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples

from workers.core import tokens
from workers.core.chunks import CHUNK_TOKENS, OVERLAP_TOKENS, Chunk, chunk_bounds, chunks, sections
from workers.core.tokens import Count

COUNTS = {"characters": tokens.counter("characters"), "o200k_base": tokens.counter("o200k_base")}

PIECES = st.sampled_from([
    "# Head", "## Sub *one*", "Title\n=====", "### Deep", "\n\n",
    "\n", " ", "word", "A sentence of words. ", "- item\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n", "```python\n# no heading\nx = 1\n```\n", "> quoted\n> # not a head\n",
    "x" * 700, "北京" * 90, "「北京。」" * 90, "    indented code\n", "---\n", "\t", "é" * 30 + " ",
])  # fmt: skip
DOCUMENTS = st.one_of(
    st.lists(st.one_of(PIECES, st.text(max_size=40)), max_size=60).map("".join),
    st.lists(st.tuples(PIECES, st.integers(1, 200)).map(lambda pair: pair[0] * pair[1]), max_size=6).map("\n".join),
)


@pytest.mark.parametrize("name", COUNTS)
@examples(60)
@given(text=DOCUMENTS)
def test_chunks_cover_the_text_and_none_is_too_long(name: str, text: str) -> None:
    count, text = COUNTS[name], re.sub("\r\n?", "\n", text)
    covered = [False] * len(text)
    for section in sections(text):
        places = list(chunk_bounds(text, section, count))
        for start, end in places:
            assert count(text[start:end].strip()) <= CHUNK_TOKENS
            covered[start:end] = [True] * (end - start)
        for (_, end), (start, _) in pairwise(places):
            assert start <= end
            assert count(text[start:end].strip()) <= OVERLAP_TOKENS
    assert all(done or character.isspace() for done, character in zip(covered, text, strict=True))


@examples(60)
@given(text=DOCUMENTS)
def test_chunking_is_a_function_of_the_text(text: str) -> None:
    found = chunks(text, tokens.estimate)
    assert found == chunks(text.replace("\n", "\r\n"), tokens.estimate) or "\r" in text
    assert len(found) == len(set(found))
    assert all(chunk.text == chunk.text.strip() != "" for chunk in found)


def of(text: str, count: Count = tokens.estimate) -> list[Chunk]:
    return chunks(text, count)


def test_a_chunk_knows_the_headings_above_it() -> None:
    found = of("Before.\n\n# Home\n\nOne.\n\n## Wi-Fi `guest`\n\nTwo.\n\nMail\n----\n\nThree.\n\n# Work\nFour.")
    assert [(one.section, one.text.split("\n")[-1]) for one in found] == [
        ("", "Before."),
        ("Home", "One."),
        ("Home > Wi-Fi guest", "Two."),
        ("Home > Mail", "Three."),
        ("Work", "Four."),
    ]


def test_a_heading_with_nothing_below_goes_with_the_next_deeper_one() -> None:
    assert of("# A\n\n## B\n\nText.\n\n## C\n") == [Chunk("A > B", "# A\n\n## B\n\nText."), Chunk("A > C", "## C")]


def test_a_byte_order_mark_hides_no_heading() -> None:
    assert of("\ufeff# Boat\n\nOak.") == of("# Boat\n\nOak.") == [Chunk("Boat", "# Boat\n\nOak.")]


def test_no_heading_in_code_quotation_or_list_begins_a_section() -> None:
    text = "# Top\n\n```sh\n# comment\n```\n\n> # quoted\n\n- # listed\n\n    # indented code\n"
    assert [one.section for one in of(text)] == ["Top"]


def test_front_matter_is_a_chunk_of_its_own_and_no_heading() -> None:
    found = of("---\ntitle: Router\ntags: [home]\n---\n# Router\n\nIn the pantry.\n")
    assert found == [
        Chunk("", "---\ntitle: Router\ntags: [home]\n---"),
        Chunk("Router", "# Router\n\nIn the pantry."),
    ]
    assert of("---\n\nText.")[-1].text.endswith("Text.")


def test_a_table_is_cut_between_its_rows_only() -> None:
    rows = [f"| device {number} | a description of some length for number {number} |" for number in range(100)]
    found = of("# Devices\n\n| name | what |\n|---|---|\n" + "\n".join(rows) + "\n")
    assert len(found) > 2
    for one in found:
        assert one.text.endswith("|")
    for row in rows:
        assert any(row in one.text for one in found)


def test_a_paragraph_that_fits_is_not_torn() -> None:
    paragraphs = [f"Paragraph {number}: " + "some words follow here " * 30 for number in range(12)]
    found = of("# Long\n\n" + "\n\n".join(paragraphs))
    assert len(found) > 3
    for paragraph in paragraphs:
        assert any(paragraph.strip() in one.text for one in found)


def test_a_chunk_ends_at_a_sentence_also_where_no_blank_is_between_sentences() -> None:
    text = "".join(f"第{number}天我们在河边的旧磨坊里见到了「他说天气很好。」那只灰色的猫。" for number in range(300))
    found = of(text)
    assert len(found) > 3
    assert all(chunk.text.endswith("猫。") or chunk.text.endswith("。」") for chunk in found)


def test_neighbouring_chunks_share_some_words() -> None:
    found = of("# Long\n\n" + " ".join(f"Sentence number {number} is here." for number in range(400)))
    assert len(found) > 3
    for one, following in pairwise(found):
        shared = following.text[: following.text.index(".") + 1]
        assert one.text.endswith(following.text[: len(shared)]) or shared in one.text


def test_a_word_longer_than_a_chunk_is_cut() -> None:
    found = of("x" * 9_000)
    assert len(found) == 1 or all(tokens.estimate(one.text) <= CHUNK_TOKENS for one in found)
    assert sum(len(one.text) for one in of("".join(f"{number:05}" for number in range(3_000)))) >= 15_000


def test_a_word_of_twice_the_length_takes_twice_the_time() -> None:
    def counted(length: int) -> int:
        sizes: list[int] = []
        chunks("x" * length, lambda text: sizes.append(len(text)) or tokens.estimate(text))  # type: ignore[func-returns-value]  # to note it
        return sum(sizes)

    assert counted(1_600_000) < 2.5 * counted(800_000)


@pytest.mark.parametrize("text", ["", "  \n\n ", "\n"])
def test_a_blank_document_has_no_chunks(text: str) -> None:
    assert of(text) == []


def test_repeated_text_under_a_heading_is_one_chunk() -> None:
    assert len(of("# A\n\nx\n\n# B\n\nx\n\n# A\n\nx\n")) == 2
