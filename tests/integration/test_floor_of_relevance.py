"""The floor of relevance: no results if nothing matches, and the matching facts otherwise."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from databases import new_database
from memory import Memory, day

from api.up.servers import Postgres
from workers.admin import branches, search_indexes
from workers.memory.context import Shape, inject
from workers.memory.embed import check_embedder
from workers.memory.recall import Question
from workers.memory.recall.floor import TOO_IRRELEVANT
from workers.storage.connection import close_pools

KNOWN = {
    "What is Mira allergic to?": "Mira is allergic to peanuts.",
    "Where is the spare key?": "The spare key hangs in the shed behind the roses.",
    "When does Mira's sister get married?": "Mira's sister gets married on the second of May.",
    "Which instrument does Jonas play?": "Jonas plays the cello in a quartet.",
    "What colour is the front door?": "The front door was painted green, a colour that Mira chose.",
    "How much does the gym cost each month?": "The gym costs 39 euros a month.",
    "Who repairs the heating?": "Mr Brandt repairs the heating; his number is on the fridge.",
    "What does Jonas drink in the morning?": "Jonas drinks tea with milk every morning.",
    "Which school does Paul go to?": "Paul goes to the school on Linden Street.",
    "When is the rent due?": "Rent is due on the third working day.",
    "What is the name of the neighbour's dog?": "The neighbours have a dog, its name is Bruno.",
    "Where did they spend the summer holidays?": "They spent the summer holidays on Bornholm.",
    "What size are Paul's shoes?": "Paul needs shoes in size 34.",
    "Which doctor does Mira see for her knee?": "Doctor Hansen treats Mira's knee.",
    "What is the password of the guest network?": "The guest network has the password limestone.",
    "How does Jonas commute to work?": "Jonas takes the bicycle to work, a commute of 20 minutes.",
}
"""A paraphrasing question for each of 16 facts, with shared words."""

OTHERS = [
    "The library closes at six on Fridays.",
    "Anna prefers window seats.",
    "A parcel for the Webers is in the hall.",
    "The car needs winter tyres by November.",
    "Lunch with Clara was moved to Thursday.",
    "Basil grows on the balcony.",
    "The printer is out of toner.",
    "Grandfather collects stamps from Portugal.",
    "The choir meets in the old mill.",
    "Milk, bread and onions are on the list.",
    "Lukas lost a glove on the tram.",
    "The tax return was filed in June.",
    "A blue umbrella was left at the theatre.",
    "The oven runs ten degrees too hot.",
    "Nora speaks Danish with her aunt.",
    "The sofa comes from a shop in Malmö.",
    "The lease of the garden plot ends next year.",
    "Cinema tickets are on the desk.",
    "The bread knife was sharpened on Monday.",
]
PARAPHRASED = {
    "Where does she live?": "I moved to Leipzig.",
    "Am I allergic to anything?": "I can't eat peanuts, they make me ill.",
    "What vehicle do we drive?": "Our car is a grey Skoda.",
    "What health advice did I get?": "The doctor wants me to stop smoking.",
    "Where does my mum come from?": "My mother was born in Riga.",
    "What do I like to drink?": "I prefer tea to coffee.",
    "How old is our child?": "Our daughter turned six in March.",
    "What injury did he have?": "He broke his leg while skiing.",
    "Who fixes the heating?": "The boiler is repaired by Mr Brandt.",
    "Which instrument do I own?": "I bought a cello last week.",
}
"""Questions that share no word with their answer."""

FOREIGN = [
    "Which university did Olga graduate from?", "How do volcanoes erupt?", "hydrant", "zqx vvkp",
    "Why was the flight to Tokyo cancelled?", "What did the lawyer say about the contract?",
]  # fmt: skip


@pytest.fixture(params=["static", "hashing"])
def small(memory: Memory, postgres: Postgres, template: str, request: pytest.FixtureRequest) -> Iterator[Memory]:
    """Return a memory of 35 facts with each built-in embedder."""
    with new_database(postgres, template) as url:
        small = memory.having(database_url=url, embedder=request.param)
        check_embedder(small.context)
        small.store(*KNOWN.values(), *OTHERS)
        yield small
        close_pools()


def texts(memory: Memory, query: str, **question: Any) -> list[str]:
    return [one.text for one in memory.ask(query, **question).results]


def test_of_35_facts_an_answer_has_the_one_that_fits_and_few_others(small: Memory) -> None:
    answers = {query: texts(small, query) for query in KNOWN}
    right = [KNOWN[query] in found for query, found in answers.items()]
    precision = [(KNOWN[query] in found) / max(len(found), 1) for query, found in answers.items()]
    assert sum(right) / len(right) >= 0.95
    assert sum(precision) / len(precision) >= 0.6


def test_what_35_facts_say_nothing_about_finds_nothing(small: Memory) -> None:
    answered = [query for query in FOREIGN if texts(small, query)]
    assert len(answered) <= len(FOREIGN) / 3
    assert not {"hydrant", "zqx vvkp"} & set(answered)
    assert all(texts(small, query, min_relevance=0) for query in FOREIGN)


def test_a_word_that_none_of_two_facts_has_finds_nothing(memory: Memory) -> None:
    memory.store("She drinks jasmine tea.", "The spare key is in the shed.")
    assert texts(memory, "oboe") == []
    assert texts(memory, "Where is the spare key?")[0] == "The spare key is in the shed."


def test_of_a_few_facts_what_may_answer_is_found_without_a_word_in_common(memory: Memory) -> None:
    memory.store("The boiler is repaired by Mr Brandt.")
    assert texts(memory, "Who fixes the heating?") == ["The boiler is repaired by Mr Brandt."]
    memory.store("The cat is called Minka.", "My sister works at the bank.")
    assert texts(memory, "Who fixes the heating?") == ["The boiler is repaired by Mr Brandt."]
    assert texts(memory, "What is my sister's profession?")[0] == "My sister works at the bank."
    assert texts(memory, "oboe") == []


def test_of_a_few_facts_a_long_prompt_finds_what_one_of_its_sentences_asks_for(memory: Memory) -> None:
    memory.store("My door code is 1111", "I have two cats", "My sister is called Anna", "I work as a nurse")
    prompt = (
        "Hello there, I am writing because the weather has been quite strange lately and the garden looks terrible "
        "after the storm of last weekend, with branches everywhere and a broken fence that the neighbours want me to "
        "repair before the end of the month, which I doubt will be possible given how busy things are at the moment. "
    )
    assert texts(memory, f"{prompt * 2} What is the door code?")[0] == "My door code is 1111"


def test_of_a_few_facts_what_only_the_lower_floor_lets_through_is_uncertain(memory: Memory) -> None:
    memory.store(*list(KNOWN.values())[:3], *OTHERS[:2])
    known = memory.ask("Where is the spare key?")
    assert ("default", known.results[0].id) not in known.uncertain
    guessed = memory.ask("Who plays the oboe?")
    assert guessed.uncertain == {("default", one.id) for one in guessed.results}
    asked_for = memory.ask("Who plays the oboe?", min_relevance=0)
    assert len(asked_for.results) == 5
    assert not asked_for.uncertain


def test_a_fact_that_is_uncertain_in_a_branch_alone_is_not_so_in_its_original(memory: Memory) -> None:
    memory.store(*list(KNOWN.values())[:3], *OTHERS[:2])
    branch = branches.begin(memory.context, "default", 1)
    branches.copy(memory.context, branch, UUID(int=0))
    branches.conclude(memory.context, branch, day(1))
    memory.store(*(f"Guest {number} bought a blanket, {number} pears and a lamp." for number in range(900)))
    search_indexes.count_lexemes(memory.context, "default", day(1))
    known = memory.ask("Where is the key?", namespaces=("default", branch.name), at=1)
    assert [one.namespace for one in known.results] == ["default", branch.name]
    assert not known.uncertain
    guessed = memory.ask("What can she not eat?", namespaces=("default", branch.name), at=1)
    assert guessed.uncertain == {(branch.name, one.id) for one in guessed.results}


def test_of_five_facts_paraphrases_are_answered_and_most_unrelated_questions_are_not(memory: Memory) -> None:
    asked, unrelated = list(PARAPHRASED), [*FOREIGN, "Who plays the oboe?", "When was the cathedral built?"]
    answered = []
    for name, few in (("one", asked[:5]), ("other", asked[5:])):
        memory.store(*map(PARAPHRASED.__getitem__, few), namespace=name)
        assert all(PARAPHRASED[query] in texts(memory, query, namespace=name) for query in few)
        answered += [query for query in unrelated if texts(memory, query, namespace=name)]
    assert len(answered) <= len(unrelated) / 2


def test_what_is_known_of_one_person_is_less_relevant_to_a_question_about_a_stranger(memory: Memory) -> None:
    memory.store(*KNOWN.values(), *OTHERS)
    known, strange = (memory.ask(f"Which instrument does {name} play?").results[0] for name in ("Jonas", "Olga"))
    assert known.id == strange.id
    assert (strange.relevance or 0) < (known.relevance or 0) / 2


def test_a_question_of_unknown_words_finds_no_fingerprints(memory: Memory) -> None:
    memory.store(*OTHERS)
    memory.decay(60)
    assert memory.value("select min(fidelity) from activity") > 1
    assert texts(memory, "zqx vvkp", at=60) == []


def test_stop_words_of_other_languages_answer_nothing(memory: Memory) -> None:
    key, rent, *_ = (
        memory.add("La clé de secours est derrière l'horloge."), memory.add("Notre loyer est de 1150 euros par mois."),
        memory.add("Le dentiste est mardi à 15 heures."), memory.add("Léa est allergique à la pénicilline."),
    )  # fmt: skip
    assert [memory.ids(one) for one in ("Où est la clé ?", "Combien coûte le loyer ?")] == [[key], [rent]]
    assert memory.ids("Quelle est la pointure de Paul ?", min_relevance=0.3) == []


def test_a_floor_that_is_asked_for_cuts_every_result(memory: Memory) -> None:
    memory.store(*KNOWN.values(), *OTHERS)
    query = "Where is the spare key?"
    every = memory.ask(query, min_relevance=0).results
    assert len(every) == 10
    for floor in (0.1, 0.5, 0.9):
        kept = [one.id for one in every if (one.relevance or 0) >= floor]
        assert memory.ids(query, min_relevance=floor) == kept
    assert memory.ids(query, min_relevance=1) == []


def test_the_setting_is_the_floor_where_none_is_asked_for(memory: Memory) -> None:
    memory.store(*KNOWN.values(), *OTHERS)
    assert texts(memory.having(min_relevance=1), "What does Anna prefer?") == []
    assert len(texts(memory.having(min_relevance=0), "hydrant")) > 5


def test_neighbours_come_with_what_is_relevant_and_with_nothing_else(memory: Memory) -> None:
    memory.store(*[{"text": text, "session": 1, "turn": turn} for turn, text in enumerate(OTHERS)])
    memory.store(
        {"text": "The spare key hangs in the shed.", "session": 2, "turn": 0},
        {"text": "Fine, thanks.", "session": 2, "turn": 1},
    )
    assert texts(memory, "Where does the spare key hang?")[:2] == ["The spare key hangs in the shed.", "Fine, thanks."]
    assert "Fine, thanks." not in texts(memory, "Where does the spare key hang?", min_relevance=0.5)
    assert texts(memory, "oboe") == []


def test_a_linked_fact_comes_with_one_that_is_relevant(memory: Memory) -> None:
    key, rain = memory.add("The spare key hangs in the shed."), memory.add("It rained for a week.")
    memory.store(*OTHERS)
    memory.link(key, rain)
    assert rain in memory.ids("Where does the spare key hang?")
    assert rain not in memory.ids("Where does the spare key hang?", min_relevance=0.5)
    assert rain not in memory.ids("oboe")


def test_neighbours_of_what_is_not_similar_enough_do_not_come(memory: Memory) -> None:
    memory.store(*[{"text": text, "session": 1, "turn": turn} for turn, text in enumerate(OTHERS)])
    assert texts(memory, "violoncello", min_relevance=0, min_similarity=0.99) == []


def test_why_and_explain_name_the_floor(memory: Memory) -> None:
    memory.store(*OTHERS)
    found = memory.ask("oboe", explain=True)
    assert found.results == []
    assert found.left_out is not None
    assert {one["rule"] for one in found.left_out} == {TOO_IRRELEVANT}
    tea = memory.ids("oboe", min_relevance=0)[0]
    assert (memory.ask("oboe", why=tea).why or {})["rule"] == TOO_IRRELEVANT


def test_a_question_of_stop_words_within_a_tag_finds_what_has_the_tag(memory: Memory) -> None:
    tea = memory.add("She drinks jasmine tea.", tags=["drinks"])
    assert memory.ids("what is it", tag="drinks") == [tea]
    assert memory.ids("jasmine", tag="drinks") == [tea]


def test_what_is_below_the_floor_is_not_injected(memory: Memory) -> None:
    memory.store(*OTHERS)
    assert inject(memory.context, "default", Question("oboe"), Shape(), day(0)).text == ""
