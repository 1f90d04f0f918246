"""Answers of tools leave out what is empty, not what is zero."""

from api.mcp import answers


def test_a_fact_that_is_not_believed_at_all_says_so() -> None:
    found = {"results": [{"id": "1", "text": "Ada lives in Bonn.", "confidence": 0.0, "pinned": False, "tags": []}]}
    assert answers.found(found) == {"facts": [{"id": "1", "text": "Ada lives in Bonn.", "confidence": 0.0}]}
    found["results"][0]["confidence"] = 1.0
    assert answers.found(found) == {"facts": [{"id": "1", "text": "Ada lives in Bonn."}]}


def test_of_a_fact_with_many_events_the_first_and_the_newest_are_shown() -> None:
    events = [{"what": f"event {number}"} for number in range(150)]
    shown = answers.history({"id": "1", "events": events})
    assert shown == {"id": "1", "events": [events[0], *events[51:]], "left_out": 50}
    assert answers.history({"id": "1", "events": events[:100]}) == {"id": "1", "events": events[:100]}
    assert answers.history({"id": "1", "events": events[:1]}) == {"id": "1", "events": events[:1]}
