"""Updates: whether one statement makes an older one outdated, judged from texts and question without an LLM.

A statement that withdraws something ("I used to like opera") names it, so the older statements about it are found when
it is stored. Two statements of different figures share little but the words of a later question: on long chats their
vectors are no closer than those of other turns. So these pairs are searched among the best results of a question, and
only where it asks for a single value.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from workers.core.arrays import Bools, Floats
from workers.core.near_duplicates import wording
from workers.core.summary import ENGLISH_STOP_WORDS
from workers.core.text import with_plain_digits, words

ASKS_FOR_A_VALUE = re.compile(
    r"\W*(?:what(?:'s| is| are| was| time| date| deadline| percentage| number| version)"
    r"|how (?:many|much|long|old|far|often|fast|big|large|tall)|when|which|where|at what|by when|by what"
    r"|(?:please )?(?:tell|give|show|remind) me (?:of )?(?:the|my|our|his|her|their|its)|current|latest)\b",
    re.IGNORECASE,
)
BEGINS_NO_KEYWORDS = re.compile(
    r"\W*(?:who|whose|why|how|do|does|did|is|are|was|were|has|have|had|can|could|shall|should|will|would|may)\b"
    r"|.*\?",
    re.IGNORECASE | re.DOTALL,
)
ASKS_FOR_THE_PAST = re.compile(
    r"\b(?:used to|did\b[^?.!;]{,80}\buse to|previous\w*|before|first|initial\w*|original\w*|earlier|formerly"
    r"|history|over time|changed?|progress\w*|evolv\w*|back then|at first|at the beginning|both"
    r"|difference|compare\w*|in (?:(?:what|which|chronological) )?order(?! (?:to|for|that))|order (?:in which|of))\b",
    re.IGNORECASE,
)
SAYS_A_CHANGE = re.compile(
    r"\b(?:now|recently|lately|just (?:found|got|switched|changed|moved|renewed|finished)|no longer|any ?more|used to"
    r"|instead|updat\w+|chang\w+|reschedul\w+|postpon\w+|mov(?:ed|ing) (?:it|the|to)|extend\w*|adjust\w+|increas\w+"
    r"|decreas\w+|reduc\w+|raised|lowered|improv\w+|upgrad\w+|downgrad\w+|renam\w+|delay\w+|grown|reached|turned"
    r"|switch\w+|revert\w*|remove\w*|delet\w+|cancel\w*|replac\w+"
    r"|correct(?:ed|ion)|finished|completed|done with|new|additional|actually|went up|went down|from now)\b",
    re.IGNORECASE,
)
FEELING = (
    r"(?:(?:actually|really|absolutely|always|also|quite|very|much|kind of|sort of)\s+)*"
    r"(?:(?:like|love|enjoy|prefer|dislike|hate|think|believe|adore|be (?:really |very )?(?:into|keen on)"
    r"|be an? (?:big |huge )?fan of|be all about)\s+)?"
)
NAMES_WITHDRAWN = re.compile(
    r"\b(?:remove|delete|take out|cross off)\s+(?:also\s+)?(?P<removed>[^!?;]+?)\s+(?:from|off)\b"
    rf"|\b(?:i|we|he|she|they|it|you)\s+(?:(?:actually|really|also)\s+)*used to\s+{FEELING}"
    r"(?P<former>[^,;.!?]+?)(?=[,;.!?]|$|\s+(?:but|though|much more|and (?:now|lately))\b)"
    r"|\bno longer\s+(?P<ended>[^,;.!?]+?)(?=[,;.!?]|$|\s+(?:and|but|though)\b)"
    r"|\b(?:changed|switched|moved) from\s+(?P<before>[^,;.!?]+?)(?=[,;.!?]|$|\s+to\b)"
    r"|\b(?:i|we|he|she|they)\s+(?:(?:have|has|had|just|finally|already|recently)\s+)*"
    r"(?:sold|gave away|given away|got rid of|threw (?:out|away)|traded in|donated)\s+"
    r"(?:my|our|the|his|her|their)\s+(?:old\s+)?"
    r"(?P<gone>[^,;.!?]+?)(?=[,;.!?]|$|\s+(?:and|but|to|for|on|in|at|last|because|since|yesterday|today)\b)",
    re.IGNORECASE,
)
NAMES_WITHDRAWN_AT_LENGTH = re.compile(
    rf"(?:n['\u2019]t|\bnot|\bnever)\b\s*{FEELING}(?P<ended>[^,;.!?]{{1,80}}?)\s+any ?more\b"
    r"|\b(?:instead of|rather than)\s+(?P<former>[^,;.!?]+)"
    r"|\b(?:finished|completed|cancell?ed|quit|gave up|given up|stopped|moved on from|gone off)\s+"
    r"(?!(?:on|by|at|in|with|up)\b|\d)(?P<done>[^,;.!?]+)",
    re.IGNORECASE,
)
WITHDRAWS_NOTHING = re.compile(
    r"(?:\b(?:not|never)|n['\u2019]t) (?:\w+ )?$"
    r"|\b(?:if|unless|whether|(?:should|shall|must|may) (?:i|we)|do (?:i|we) (?:need|have) to"
    r"|how (?:to|(?:do|can|could|would) \w+)) (?:\w+ ){0,2}\w*$",
    re.IGNORECASE,
)
"""What stands before the name of something that stays, or perhaps stays."""

SAID_OF_WITHDRAWALS = (
    "used to", "no longer", "more", "remove", "delete", "take out", "cross off", "finished", "completed", "cancel",
    "quit", "gave up", "given up", "moved", "stopped", "instead of", "rather than", "changed", "switched", "gone off",
    "sold", "gave away", "given away", "got rid of", "threw out", "threw away", "traded in", "donated",
)  # fmt: skip
"""Each text that withdraws something contains one of these: a quick test that most texts fail."""
WORDS_OF_WITHDRAWALS = f"{' '.join(SAID_OF_WITHDRAWALS)} anymore"
"""The words by which such texts are searched; one with stop words alone, such as "any more", is not found."""

BEGINNING = re.compile(r"\b\w{3,4}")
"""The first letters of a word, which its forms have in common; shorter words say little."""

SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
FIGURE = re.compile(r"\d(?:[\d,.:]*\d)?")
DAY = re.compile(
    r"\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)(?=days?\b)|(?:January|February|March|April|May|June|July|August"
    r"|September|October|November|December)\b)"
)
"""A weekday, without "day", or a month: the same figure with another one is another date."""

SHARED = 0.3
"""Least share of the question's information that both statements must hold to be about the same subject."""

MOST_KEYWORDS = 5
"""Maximum number of words of a query that is read as keywords, which ask for what is current."""

LONGEST_STATEMENT = 200
"""Maximum number of characters of a text that is taken for a single statement."""

SAYS_THE_PAST = re.compile(
    r"\b(?:(?<!(?: day|week|onth|year)s )(?<!(?: day|week|onth|year)[ -])old|former\w*|previous\w*|original\w*"
    r"|used to|earlier|at first|back then)\b",
    re.IGNORECASE,
)

MOST_OF_A_VALUE = 2
"""Maximum number of words by which a statement differs from one with another value."""

BOTH_MAY_HOLD = re.compile(
    r"\b(?:like|love|enjoy|hate|dislike|want|need|know|speak|play|visit|buy|bought|read|watch|saw|seen|eat|ate|met"
    r"|meet(?!ing)|(?:am|are|is|['\u2019](?:m|re|s)) meeting|own|tried|learn|stud(?:y|ied)|allergic)(?:s|d|ed|ing)?\b",
    re.IGNORECASE,
)
"""Words that may be said of several things at once: who likes tea may like coffee too, but a meeting has one date."""

HAS_SEVERAL = re.compile(
    r"\b(?:(?!\w*(?:ss|us|is|hours|times|news)$)\w{2,}s|children|allergy|intolerance|hobby|interest|pet|friend|child"
    r"|son|daughter|sibling|brother|sister|cousin|skill)$",
    re.IGNORECASE,
)
HAS_ONE = re.compile(
    r"\b(?:favou?rite|main|primary|native|current|best|default|number|oldest|youngest)\b", re.IGNORECASE
)
"""Keys that may have several values at once, such as "allergies" and "sister", unless they name the one of them."""

ASKS_FOR_A_PLACE = re.compile(
    r"\b(?:liv(?:e|es|ed|ing)|resid\w+|home|house|flat|city|town|country|address|work\w*|job|employ\w*|company"
    r"|profession|occupation)\b",
    re.IGNORECASE,
)
MOVES = (
    (
        re.compile(r"\b(?:(?:live|lives|lived|living|based|resid\w+) in|home (?:is|town|city))\b", re.IGNORECASE),
        re.compile(
            r"\b(?:moved|relocated|moving) (?!(?:my|our|his|her|their|the|an?|it|this|that|these|those|some|all)\b)"
            r"(?:\w+ ){0,3}?to\b"
            r"|\bnow (?:lives?|living|based|resid\w+) in\b|\b(?:lives?|living|based|resid\w+) in (?:[\w-]+ ){1,3}now\b",
            re.IGNORECASE,
        ),
    ),
    (
        re.compile(r"\b(?:work(?:s|ed|ing)? (?:at|for|as)|employ\w+|job is)\b", re.IGNORECASE),
        re.compile(
            r"\b(?:joined(?! (?:an?|my|our) )|(?<!\bi )(?<!\bwe )hired|new job|started (?:\w+ ){0,3}?(?:at|as)"
            r"|now work(?:s|ing)? (?:at|for|as)|work(?:s|ing)? (?:at|for|as) (?:[\w-]+ ){1,3}now)\b",
            re.IGNORECASE,
        ),
    ),
)
"""What says where someone lives or works, and what says that this changed: such statements often share no word."""

SPEAKER = re.compile(r"\b(?:I|my|we|our|user)\b", re.IGNORECASE)
NAMES_SPEAKER = re.compile(r"\b(?:I|we|me|us|user)\b", re.IGNORECASE)
THIRD_PERSON = re.compile(r"\W*(?:he|she|they|it)\b", re.IGNORECASE)
SPEAKS_OF_THEMSELVES = re.compile(r"\b(?:I|we)\b", re.IGNORECASE)
RELATIVE = re.compile(
    r"\b(?:sister|brother|mother|mom|mum|father|dad|parent|son|daughter|wife|husband|partner|boyfriend|girlfriend"
    r"|friend|cousin|aunt|uncle|niece|nephew|grand\w+|boss|colleague|coworker|neighbou?r|roommate)",
    re.IGNORECASE,
)
"""Relatives and acquaintances: "my sister moved" does not say that the speaker did."""

OF_SOMEONE = ("ended", "before")
"""Groups of what is withdrawn of the person or thing that stands before it: "My son no longer …"."""

CLAUSE = re.compile(r"[,;:()\u2013\u2014]|\b(?:that|but)\b", re.IGNORECASE)
PRONOUN = re.compile(r"\b(?:I|we|you|he|she|they|it|this|which|who|user)\b", re.IGNORECASE)
POSSESSOR = re.compile(r"(\w+)['\u2019]s\b")
OF_ANOTHER = re.compile(
    rf"\W*(?:my|our) (?:\w+ )?(?P<relative>{RELATIVE.pattern})"
    r"|\W*(?P<name>(?-i:[A-Z])\w+)(?:['\u2019]s\b| (?:has|had|goes|went|took|ate|drank|drove|bought|does|studie[sd]"
    r"|(?:us|lik|lov|hat|liv|tak|driv|smok|mak|work|play|enjoy|prefer|own|want|need|eat|drink|read|speak|sing)e?[sd])\b)",
    re.IGNORECASE,
)
"""The beginning of a statement about a relative, or about someone with a name."""

MAX_SENTENCE, MAX_SUBJECTS = 500, 3
"""Characters of a sentence, and names in a text, in which something withdrawn is looked for: each costs two queries."""

SHARED_OF_SUBJECT = 0.7
"""Least share of the information of what is withdrawn that an older statement must contain."""

DISTINCTIVE = 0.5
"""Least information of a word that it contains, as a share of a word's that one fact contains."""

NEARLY_AS_GOOD = 0.6
"""Least score of the newer statement, as a share of the older one's.

On BEAM-100K 1-10, 0.7 finds 0.61 of the updates, 0.6 finds 0.72 and 0.5 0.78; mean reciprocal rank 0.600, 0.590,
0.588. On BEAM-500K 1-10 all find 0.94; 0.422, 0.405, 0.393.
"""

SHORT_NEARLY_AS_GOOD = 0.5
"""Least score of the newer statement, as a share of the older one's, if both are short."""

ABOVE = 2e-6
"""Distance by which the newer statement is ranked above the older one."""


def asks_for_the_past(question: str) -> bool:
    """Return whether a question asks for an earlier state or for a change."""
    return ASKS_FOR_THE_PAST.search(question) is not None


def asks_for_a_value(question: str) -> bool:
    """Return whether a question, or a few keywords, asks for a single current value: a number, a date, a name."""
    is_keywords = len(question.split()) <= MOST_KEYWORDS and BEGINS_NO_KEYWORDS.match(question) is None
    return (is_keywords or ASKS_FOR_A_VALUE.match(question) is not None) and not asks_for_the_past(question)


def asks_for_a_place(question: str) -> bool:
    """Return whether a question asks for a single current value and may mean where someone lives or works."""
    return asks_for_a_value(question) and ASKS_FOR_A_PLACE.search(question) is not None


def are_short(*texts: str) -> bool:
    """Return whether each text is so short that it makes one statement."""
    return all(len(text) <= LONGEST_STATEMENT for text in texts)


def outdates(newer: str, older: str) -> bool:
    """Return whether a text reports a change and states other figures than an older one.

    If both are short, it may be another day instead, or another name where the newer text has most of the older one's
    words.
    """
    if SAYS_A_CHANGE.search(newer) is None:
        return False
    figures = [set(FIGURE.findall(with_plain_digits(text))) for text in (newer, older)]
    days = [set(DAY.findall(text)) for text in (newer, older)] if are_short(newer, older) else []
    if any(all(stated) and stated[0] != stated[1] for stated in (figures, days) if stated):
        return True
    if all(figures) or not days:
        return False
    (said, values), (said_before, values_before) = map(_words_and_values, (newer, older))
    every_before = said_before | values_before
    return not values <= values_before and 2 * len(every_before & (said | values)) > len(every_before)


def may_have_several(key: str) -> bool:
    """Return whether a key of an entity may have several values that are true at once: a person, several allergies."""
    words = " ".join(re.split(r"[\W_]+", key)).strip()
    return bool(HAS_SEVERAL.search(words) or BOTH_MAY_HOLD.search(words)) and not HAS_ONE.search(words)


def has_another_value(newer: str, older: str) -> bool:
    """Return whether two short texts make the same statement with different values.

    Either the newer one has at least half of the older one's words, and each has one or two words that the other lacks;
    or they have the same words, but different figures or names. Stop words and words that report a change are ignored.
    """
    if not are_short(newer, older) or BOTH_MAY_HOLD.search(newer) or SAYS_THE_PAST.search(newer):
        return False
    (said, values), (said_before, values_before) = map(_words_and_values, (newer, older))
    if said == said_before:
        return bool(said and values and values_before) and values != values_before
    every, every_before = said | values, said_before | values_before
    common = len(every & every_before)
    return 2 * common >= len(every_before) and all(
        0 < len(one) - common <= MOST_OF_A_VALUE for one in (every, every_before)
    )


def says_a_move(newer: str, older: str) -> bool:
    """Return whether a short text says that someone moved or changed jobs, and an older one where they were before."""
    if not are_short(newer, older) or SAYS_THE_PAST.search(newer):
        return False
    names, names_before = _names(newer), _names(older)
    if names <= names_before:
        return False
    found = [(before.search(older), move.search(newer)) for before, move in MOVES]
    return any(
        (bool(names & names_before) or _are_of_one_speaker(newer[: moved.start()], older[: was.start()], newer, older))
        and not WITHDRAWS_NOTHING.search(newer, 0, moved.start())
        for was, moved in found
        if was and moved
    )


def _are_of_one_speaker(before_move: str, before_place: str, newer: str, older: str) -> bool:
    """Return whether two texts speak of the speaker, or of the same relative, judged by what precedes their verbs."""
    return all(map(SPEAKER.search, (newer, older))) and _relatives(before_move) == _relatives(before_place)


def _relatives(before_verb: str) -> set[str]:
    """Return the relatives in what precedes a verb; none if the speaker is its subject."""
    return set() if SPEAKS_OF_THEMSELVES.search(before_verb) else set(RELATIVE.findall(before_verb.lower()))


def _names(text: str) -> frozenset[str]:
    """Return the names in a text, in lower case: "I" has a capital too."""
    return wording(text).names - {"i"}


def _words_and_values(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the informative words of a text, and its names and words with figures, in lower case."""
    read = wording(SAYS_A_CHANGE.sub(" ", text))
    values = read.names.union(filter(FIGURE.search, read.words))
    return read.words - ENGLISH_STOP_WORDS - values, values


@dataclass(frozen=True, slots=True)
class Subject:
    """What a text withdraws, in its words, and the least number of informative words that identify it.

    `whose` are the beginnings of the words for the person or thing of which it is withdrawn, if they are there; `own`
    is the sentence if it is withdrawn of the speaker.
    """

    text: str
    least_words: int = 1
    whose: frozenset[str] = frozenset()
    own: str = ""

    def is_of_another(self, text: str) -> bool:
        """Return whether a short text is about another person or thing than that of which this is withdrawn."""
        if not are_short(text):
            return False
        if self.whose and not THIRD_PERSON.match(text) and self.whose.isdisjoint(beginnings([text])):
            return True
        another = None if not self.own or NAMES_SPEAKER.search(text) else OF_ANOTHER.match(text)
        who = another[another.lastgroup or 0].lower() if another else ""
        return bool(who) and who not in ENGLISH_STOP_WORDS and who not in self.own.lower()


def withdrawn_subjects(text: str) -> list[Subject]:
    """Return what a text says has ended, was finished, or is to be removed, the first few."""
    # Outside ASCII, ignoring case is more than lower case.
    if text.isascii() and not any(map(text.lower().__contains__, SAID_OF_WITHDRAWALS)):
        return []
    sentences = (sentence for sentence in SENTENCE_END.split(text) if len(sentence) <= MAX_SENTENCE)
    return list(islice((subject for sentence in sentences for subject in _subjects(sentence)), MAX_SUBJECTS))


def _subjects(sentence: str) -> Iterator[Subject]:
    plain = " ".join(sentence.split())  # the expressions would try every way to divide a run of blanks
    for names, least in (NAMES_WITHDRAWN, 1), (NAMES_WITHDRAWN_AT_LENGTH, 2):
        for named in names.finditer(plain):
            if not WITHDRAWS_NOTHING.search(plain, 0, named.start()):
                group = named.lastgroup or ""
                yield Subject(named[group], least, *_whose(plain, named.start(), named.start(group), group))


def _whose(sentence: str, begin: int, subject: int, group: str) -> tuple[frozenset[str], str]:
    """Return `whose` and `own` of what a sentence withdraws from `subject` on, in words that start at `begin`."""
    clause = CLAUSE.split(sentence[:subject])[-1]
    named = _relatives(clause)
    if group in OF_SOMEONE and not PRONOUN.search(clause):
        before = CLAUSE.split(sentence[:begin])[-1].lower()
        named = {*POSSESSOR.findall(before)} or {*words(before)} - ENGLISH_STOP_WORDS
    is_own = SPEAKER.search(clause) is not None and not _relatives(clause)
    return frozenset(beginnings(named)), sentence if is_own else ""


def beginnings(texts: Iterable[str]) -> set[str]:
    """Return the first letters of the words of texts, in lower case."""
    return {one for text in texts for one in BEGINNING.findall(text.lower())}


def may_be_named(subject: str, said: set[str]) -> bool:
    """Return whether texts with these beginnings may hold enough of a subject: a quick test without frequencies."""
    named = beginnings([subject])
    return not named or not named.isdisjoint(said)


def decisive(information: Floats) -> int:
    """Return how many of a subject's rarest words are searched: a text without any of them does not contain enough.

    `information` has the weights of its words, rarest first.
    """
    needed = (1 - SHARED_OF_SUBJECT) * information.sum()
    return min(int(np.searchsorted(np.cumsum(information), needed, side="right")) + 1, len(information))


def withdrawn(held: Bools, information: Floats, most: float) -> Floats:
    """Return for n texts the share of a withdrawn subject that each contains; 0 for those that it is not about.

    Args:
        held: which of the subject's k words each text contains, (n, k).
        information: the k words' weights.
        most: the weight of a word that one text contains.
    """
    shares: Floats = held @ information / information.sum()
    distinctive = (held & (information >= DISTINCTIVE * most)).any(axis=1)
    return np.where(distinctive & (shares >= SHARED_OF_SUBJECT), shares, 0.0)


def with_newer_above(scores: Floats, stated_at: Floats, pairs: Sequence[tuple[int, int]]) -> Floats:
    """Return n scores where the newer statement of each (newer, older) pair of indexes ranks above the older one.

    If several make the same one outdated, the newest ranks highest. `stated_at` are n instants in seconds.
    """
    above, newest = scores.copy(), dict[int, int]()
    for newer, older in _oldest_first(pairs, stated_at):
        above[newer] = max(above[newer], above[newest.get(older, older)] + ABOVE)
        newest[older] = newer
    return np.asarray(above, np.float64)


def with_newer_of(those: Bools, stated_at: Floats, pairs: Sequence[tuple[int, int]]) -> Bools:
    """Return `those` of n statements and all that make one of them outdated, also in several steps."""
    chosen = those.copy()
    for newer, older in _oldest_first(pairs, stated_at):
        chosen[newer] |= chosen[older]
    return chosen


def _oldest_first(pairs: Sequence[tuple[int, int]], stated_at: Floats) -> list[tuple[int, int]]:
    """Return the pairs by the date of the newer statement, but a chain of statements from its oldest pair on.

    Statements of a chain may have one date. A circle, which only links by hand can make, is begun anywhere.
    """
    found, waiting = [], sorted(pairs, key=lambda pair: stated_at[pair[0]])
    left = Counter(newer for newer, _ in pairs)
    while waiting:
        found.append(waiting.pop(next((i for i, (_, older) in enumerate(waiting) if not left[older]), 0)))
        left[found[-1][0]] -= 1
    return found
