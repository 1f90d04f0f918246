"""Questions: their question words, their misspelt words, and names that facts spell in another way.

A misspelt word is one that a slip of a finger makes of a word that facts contain. The slips are those of Damerau ("A
technique for computer detection and correction of spelling errors", 1964): a letter left out, added or replaced, or two
neighbours exchanged. The first letter is seldom wrong (Pollock and Zamora, 1984).

The text index leaves out stop words of the database's language only, so "Où est la clé ?" would find every text with
"est" and "la". Those of six other languages are left out of questions in them.

In scripts that the index splits into characters, pairs such as those of 什么时候 ("when") are rare in facts, so BM25
would weigh them most, and hardly any answer has them. The same holds for 是 ("is") before them, and for 在 ("is at") at
the end of a question: 钥匙在哪儿 ("where is the key").
Words and names that contain one, such as 任何时候 ("any time"), 多伦多大学 (a university) and どうぶつ ("animal"), stay
whole.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from difflib import SequenceMatcher
from string import ascii_lowercase

from workers.core.names import capitalised, names_in_question
from workers.core.summary import ENGLISH_STOP_WORDS

SHORTEST = 6
"""Letters of the shortest word that is corrected: shorter ones differ by a letter from many others."""

LONGEST = 32
"""Letters of the longest word or name whose other spellings are looked for: slips and lookups grow with its length.

A "word" of 2,000 letters has 100,000 slips of 2,000 letters, whose lookup takes longer than a recall may.
"""

MOST_WORDS = 3
"""Words of a question that are corrected; each takes some 60 lookups a letter."""

WORD = re.compile(r"[a-z]+", re.IGNORECASE)

SHORTEST_NAME = 4
MOST_NAMES = 2
"""Names of a question whose other spellings are looked for."""

ALIKE = 0.65
"""Least share of letters that two spellings of one name have in common, as `difflib` counts them."""

SOUNDS = str.maketrans("cqz", "kks")
"""Letters that are taken for others, as they sound alike."""

FIRST_LETTERS = {"c": "ck", "f": "fp", "k": "ckq", "p": "fp", "q": "kq", "s": "sz", "z": "sz"}
"""Letters with which another spelling may begin, where these are more than one."""

VOWELS = frozenset("aeiouy")
SILENT = re.compile("(?<=.)[aeiouyw]|(?<=[^aeiouy])h")
"""Letters that spellings of one name leave out or exchange: vowels after the first letter, and h after a consonant."""

DOUBLED = re.compile(r"(.)\1+")
LEAST_SOUNDS = 3
"""Sounds of the shortest name that is compared by them: many names have two in common, such as John and Jane."""


def doubtful(question: str, unknown: Collection[str], dictionary: Collection[str]) -> list[str]:
    """Return the words of a question, in lower case, that may be misspelt: no fact has them, and no dictionary.

    Names are not among them: that of another person may differ by one letter.
    """
    names = _unknown_names(question, unknown)
    words = dict.fromkeys(word.lower() for word in WORD.findall(question) if SHORTEST <= len(word) <= LONGEST)
    return [one for one in words if one in unknown and one not in names and one not in dictionary][:MOST_WORDS]


def slips(word: str) -> set[str]:
    """Return all words that become `word` by one slip after the first letter."""
    halves = _halves(word)
    without = {left + right[1:] for left, right in halves if right}
    replaced = {left + letter + right[1:] for left, right in halves if right for letter in ascii_lowercase}
    added = {left + letter + right for left, right in halves for letter in ascii_lowercase}
    return (without | exchanged(word) | replaced | added) - {word}


def exchanged(word: str) -> set[str]:
    """Return all words that become `word` by the exchange of two neighbouring letters after the first."""
    return {left + right[1] + right[0] + right[2:] for left, right in _halves(word) if len(right) > 1} - {word}


def _halves(word: str) -> list[tuple[str, str]]:
    return [(word[:at], word[at:]) for at in range(1, len(word) + 1)]


def meant(doubtful: Collection[str], known: Mapping[str, int]) -> dict[str, str]:
    """Return for doubtful words, in lower case, the most frequent known word that each may mean, if any.

    `known` has the number of facts of each word that facts contain.
    """
    found = {word: slips(word) & known.keys() for word in doubtful}
    return {word: max(those, key=lambda one: (known[one], one)) for word, those in found.items() if those}


def replaced(question: str, meant: Mapping[str, str]) -> str:
    """Return the question with words, given in lower case, replaced by others."""
    return WORD.sub(lambda found: meant.get(found[0].lower(), found[0]), question)


def unknown_names(question: str, unknown: Collection[str]) -> list[str]:
    """Return up to `MOST_NAMES` names of a question that no fact has, in lower case."""
    names = _unknown_names(question, unknown)
    return [one for one in sorted(names) if WORD.fullmatch(one) and SHORTEST_NAME <= len(one) <= LONGEST][:MOST_NAMES]


def other_spellings(name: str, known: Sequence[str]) -> list[str]:
    """Return which of some words, in lower case, may be other spellings of a name.

    They sound alike, as "Mohammed" and "Muhamad", or two letters are exchanged. Both end in a vowel, or both in a
    consonant: "Daniel" and "Daniela" are two people.
    """
    sounds, slipped = _sounds(name), exchanged(name) if len(name) >= SHORTEST else set[str]()
    return [one for one in known if _ends_alike(name, one) and (one in slipped or _sounds_alike(name, one, sounds))]


def _unknown_names(question: str, unknown: Collection[str]) -> frozenset[str]:
    return names_in_question(question) & capitalised(question, unknown)


def _ends_alike(name: str, other: str) -> bool:
    last = {name[-1], other[-1]}
    return len(last) == 1 or last <= {"e", "i", "y"} or not last & VOWELS


def _sounds_alike(name: str, other: str, sounds: str) -> bool:
    if len(sounds) < LEAST_SOUNDS or _sounds(other) != sounds:
        return False
    return SequenceMatcher(None, name, other).ratio() >= ALIKE


def _sounds(name: str) -> str:
    """Return the consonants of a name that are heard, and its first letter."""
    return SILENT.sub("", DOUBLED.sub(r"\1", name.replace("ph", "f").replace("ck", "k").translate(SOUNDS)))


END = r"(?!\w)"

CHINESE = rf"""
    (?:是|(?<![现現正存实實自])在(?=哪[里裡儿兒]?{END}))?(?:什么时候|什麼時候|甚麼時候|为什么|為什麼|什么(?!值得买)|什麼|甚麼|怎么样|怎麼樣|怎么|怎麼|怎样|怎樣|如何
    |哪(?!吒|都通|[儿兒][网網])[一里裡儿兒個个些位]?|谁|誰|多少|多久|多大(?![学學])|(?<!任)何[时時]
    |(?<![十好前这這过過])(?:几[点个岁次天年月]|幾[點個歲次天年月])|是否)[是的]?
    |[吗嗎呢]{END}
"""

ASKING = "だれ|いつ|どこ|どれ|どの|どんな|どう|いくつ|いくら|なぜ|なに"

JAPANESE = rf"""
    (?:(?<![ぁ-ん])|(?<=[はがをにでと])(?!どの))
    (?:{ASKING})(?!で?も|か[^\Wらな]|(?<=いつ)き|(?<=どう)[ぶぐろ]|(?<=なに)わ|(?<=どれ)み|(?<=いくら)(?:丼|ちゃん))
    |誰|(?<![幾如])何(?![かも氏様君]|先生|さん|くん|ちゃん)
    |(?:でしょう|でした|です|ました|ません|ます|だった|である)か{END}
"""

KOREAN = rf"""
    (?<!\S)(?:무엇|무슨|뭐|언제|어디|누가|누구|왜|어떤|어떻게|얼마나?|몇)
    (?:은|는|이|가|을|를|의|에서?|로)?(?:인가요?|입니까|이었나요|였나요|였습니까)?{END}
"""

THAI = "อะไร|ที่ไหน|เมื่อไหร่|เมื่อไร|ใคร(?!่)|ทำไม|อย่างไร|เท่าไหร่|เท่าไร|หรือไม่|คนใด|สิ่งใด"

LANGUAGES = {
    re.compile(letter): re.compile(words, re.VERBOSE)
    for letter, words in {
        "[\u3040-\u30ff]": JAPANESE, "[\uac00-\ud7af]": KOREAN, "[\u0e00-\u0e7f]": THAI, "[\u3400-\u9fff]": CHINESE,
    }.items()
}  # fmt: skip
"""The question words of each language by its letters, in this order, as Japanese has Chinese characters too."""


GERMAN = (
    "wo wer wann wie wohin woher wem wen wessen warum wieso welche welcher welches welchen welchem wieviel",
    """was der die das dem den des ein eine einer eines einem einen ist sind bin bist wird werden habe haben
    ich du er sie es wir ihr mir mich dir dich ihm ihn uns euch mein meine meiner meinen meinem dein deine
    sein seine unser unsere und oder auf aus bei für gegen im in mit nach um von vom vor zu zum zur am an
    als sich""",
)
FRENCH = (
    "où quand qui quel quelle quels quelles combien comment pourquoi quoi",
    """le la les l un une des du de d au aux à est sont suis es a ai as ont avons j je tu il elle on nous
    vous ils elles m me t te s se mon ma mes ton ta tes sa ses notre nos votre vos leur leurs et ou en dans
    avec chez ce c cette ces ça qu que y""",
)
SPANISH = (
    "dónde donde cuándo cuando quién quien quiénes cuál cuáles cuánto cuánta cuántos cuántas cómo qué",
    """el la los las un una unos unas lo de del al a es está están soy eres ha han yo tú él ella nosotros
    ellos ellas me te se le les nos mi mis tu tus su sus nuestro nuestra y o en por para como que""",
)
ITALIAN = (
    "dove dov quando quale quali quanto quanta quanti quante perché cosa",
    """il lo la i gli le l un uno una di del della dei delle dell da dal al alla a è sono ha ho hai io tu
    lui lei noi voi loro mi ti si ci mio mia miei tuo tua suo sua nostro nostra e o in nel nella per su che
    chi""",
)
PORTUGUESE = (
    "onde quando quem qual quais quanto quanta quantos quantas",
    """o a os as um uma de do da dos das em no na nos nas ao à é está estão tem eu tu ele ela nós eles elas
    me te se meu minha meus minhas teu tua seu sua nosso nossa e ou por para pelo pela como que""",
)
DUTCH = (
    "waar wanneer waarom wie welke hoeveel",
    """wat hoe de het een is zijn ben bent heeft hebben ik jij je hij zij ze wij we jullie mij mijn jouw onze
    ons en of op aan in met naar bij van voor te om tot""",
)
OTHER_LANGUAGES = [
    tuple(frozenset(words.split()) for words in language)
    for language in (GERMAN, FRENCH, SPANISH, ITALIAN, PORTUGUESE, DUTCH)
]
"""Question words and other stop words of languages, without those that say something in English, such as "war"."""

LETTERS = re.compile(r"[^\W\d_]+")
SURELY = 3
"""How many more different stop words a question must have of another language than of English.

A question word counts as so many.
"""


def without_question_words(query: str) -> str:
    """Return the query without question words, and in some languages stop words, unless nothing else is left."""
    query = unicodedata.normalize("NFC", query)
    letters = (words for letter, words in LANGUAGES.items() if letter.search(query))
    asking = None if query.isascii() else next(letters, None)
    rest = _without_stop_words(query) if asking is None else asking.sub(" ", query)
    return rest if re.search(r"\w", rest) else query


def _without_stop_words(query: str) -> str:
    said = {*LETTERS.findall(query.lower())}
    english = sum(word in ENGLISH_STOP_WORDS for word in said)
    counts = [sum((word in asking) * SURELY + (word in others) for word in said) for asking, others in OTHER_LANGUAGES]
    if max(counts) - english < SURELY:
        return query
    left_out = frozenset[str]().union(*OTHER_LANGUAGES[counts.index(max(counts))])
    return LETTERS.sub(lambda word: " " if word[0].lower() in left_out else word[0], query)
