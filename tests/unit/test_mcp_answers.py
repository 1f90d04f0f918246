"""Answers of tools leave out what is empty, not what is zero."""

from api.mcp import answers


def test_a_fact_that_is_not_believed_at_all_says_so() -> None:
    found = {"results": [{"id": "1", "text": "Ada lives in Bonn.", "confidence": 0.0, "pinned": False, "tags": []}]}
    assert answers.found(found) == {"facts": [{"id": "1", "text": "Ada lives in Bonn.", "confidence": 0.0}]}
    found["results"][0]["confidence"] = 1.0
    assert answers.found(found) == {"facts": [{"id": "1", "text": "Ada lives in Bonn."}]}
