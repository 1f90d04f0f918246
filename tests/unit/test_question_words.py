"""Question words of other languages than English, which are left out of a query."""

from unicodedata import normalize

import pytest

from workers.core.questions import without_question_words


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("我妹妹是做什么工作的?", "我妹妹是做 工作的?"),
        ("演练时间是什么时候?", "演练时间 ?"),
        ("誰負責驗證?", " 負責驗證?"),
        ("你喜欢吃辣吗", "你喜欢吃辣 "),
        ("上司の名前は何ですか?", "上司の名前は  ?"),
        ("仕事はいつ始まりますか", "仕事は 始まり "),
        ("보물지도는 어디에 있나요?", "보물지도는   있나요?"),
        ("แผนที่อยู่ที่ไหน", "แผนที่อยู่ "),
        ("你几岁", "你 "),
        ("钥匙在哪儿?", "钥匙 ?"),
        ("他现在哪里?", "他现在 ?"),
        ("鑰匙在哪", "鑰匙 "),
        ("妹妹在哪里上班", "妹妹在 上班"),
        ("集合はいつから", "集合は から"),
        ("鍵はどこかな", "鍵は かな"),
        ("Wo hängt der Ersatzschlüssel?", "  hängt   Ersatzschlüssel?"),
        ("Où habite Paul ?", "  habite Paul ?"),
        ("¿Dónde vivo?", "¿  vivo?"),
        ("Dove abita il gatto?", "  abita   gatto?"),
        ("Onde mora a Ana?", "  mora   Ana?"),
        ("Waar ligt de sleutel?", "  ligt   sleutel?"),
    ],
)
def test_question_words_are_left_out(query: str, rest: str) -> None:
    assert without_question_words(query) == rest


def test_question_words_are_left_out_in_whatever_form() -> None:
    query = "보물지도는 어디에 있나요?"
    assert without_question_words(normalize("NFD", query)) == without_question_words(query)


@pytest.mark.parametrize(
    "query",
    [
        "Where is the key?",
        "What did Los de la Cruz say?",
        "El Paso weather",
        "Angkor Wat",
        "El Al flight",
        "Von der Leyen",
        "J.J. Abrams",
        "die hard movie",
        "son birthday",
        "Qui est-ce ?",
        "何先生的电话",
        "哪吒的武器",
        "几何作业",
        "多伦多大学的地址",
        "任何时候都可以",
        "十几年前的事",
        "什么值得买的优惠",
        "去哪儿网的订单",
        "哪都通的快递",
        "いつも朝に走る",
        "ぶどうの木",
        "どうぶつの森",
        "いつきの誕生日",
        "いくら丼",
        "なにわ男子の曲",
        "おジャ魔女どれみ",
        "どこでもドア",
        "いつか行きたい国",
        "何さんの電話番号",
        "ใคร่ครวญ",
        "누가복음",
        "什么",
        "Überall?",
    ],
)
def test_other_words_stay(query: str) -> None:
    assert without_question_words(query) == query
