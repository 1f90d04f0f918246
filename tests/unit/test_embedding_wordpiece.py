"""WordPiece tokens equal those of BERT's own tokenizer."""

import hashlib
from functools import cache
from itertools import count

import pytest

from workers.embedding import wordpiece
from workers.embedding.wordpiece import LONGEST_PIECES, VOCABULARY, encode

BERT = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"

PIECES = VOCABULARY.read_text(encoding="utf-8").split("\n")


def test_the_vocabulary_is_that_of_the_uncased_bert_models() -> None:
    assert hashlib.sha256(VOCABULARY.read_bytes()).hexdigest() == BERT


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello, world!", "hello , world !"),
        ("Unaffordable préfixes: naïve façade.", "una ##ff ##ord ##able prefix ##es : naive facade ."),
        ("我喜欢猫 cats", "我 [UNK] [UNK] [UNK] cats"),
        ("snake_case C++ a.b@c.de $5.00", "snake _ case c + + a . b @ c . de $ 5 . 00"),
        ("日本語 カタカナ", "日 本 語 カ ##タ ##カ ##ナ"),
        ("€100 “quoted”…", "€ ##100 “ quoted ” …"),
        ("x" * 101 + " ok", "[UNK] ok"),
        ("zero\u200bwidth\x07 😀", "zero ##wi ##dt ##h [UNK]"),
        ("", ""),
    ],
)
def test_texts_have_the_pieces_that_the_models_were_trained_with(text: str, pieces: str) -> None:
    (numbers,) = encode([text])

    assert " ".join(PIECES[number] for number in numbers) == pieces


def test_no_piece_is_looked_for_that_is_longer_than_any_of_the_vocabulary() -> None:
    continuing = [piece.removeprefix("##") for piece in PIECES if piece.startswith("##")]
    beginning = [piece for piece in PIECES if not piece.startswith("##")]

    assert {"": max(map(len, beginning)), "##": max(map(len, continuing))} == LONGEST_PIECES


def test_words_of_many_short_pieces_take_a_few_lookups_for_each_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(dict[str, int]):
        lookups = 0

        def __contains__(self, piece: object) -> bool:
            Counted.lookups += 1
            return super().__contains__(piece)

    monkeypatch.setattr(wordpiece, "vocabulary", cache(lambda: Counted(zip(PIECES, count(), strict=False))))
    words = ["qzxjvk" * 16, "kvjxzq" * 16]

    (numbers,) = encode([" ".join(words)])

    assert len(numbers) > 100
    assert Counted.lookups < 11 * sum(map(len, words))
