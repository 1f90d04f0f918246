"""Question words of languages that the text index splits into characters.

The index leaves out stop words of the database's language only. Pairs such as those of 什么时候 ("when") are rare in
facts, so BM25 would weigh them most, and hardly any answer contains them. Common words and names that contain one, such
as 任何时候 ("any time"), 多伦多大学 (a university) and どうぶつ ("animal"), stay whole.
"""

import re

from workers.core.passages import UNSPACED_RUN

END = r"(?!\w)"

CHINESE = rf"""
    是?(?:什么时候|什麼時候|甚麼時候|为什么|為什麼|什么(?!值得买)|什麼|甚麼|怎么样|怎麼樣|怎么|怎麼|怎样|怎樣|如何
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


def without_question_words(query: str) -> str:
    """Return the query without question words of these languages, unless nothing else is left."""
    if query.isascii():
        return query
    asking = next((words for letter, words in LANGUAGES.items() if letter.search(query)), None)
    rest = query if asking is None else asking.sub(" ", query)
    return rest if UNSPACED_RUN.search(rest) else query
