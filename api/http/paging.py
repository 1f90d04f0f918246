"""Paging: how much of a listing is answered at once, and how whoever asks goes on."""

from typing import Annotated

from fastapi import Query, Request, Response

from api.http import schemas

Limit = Annotated[int, Query(ge=1, le=schemas.MOST_RESULTS, description="how many at most")]
Cursor = Annotated[str | None, Query(description="the `next` of the page before; else the listing begins")]


def link_next(request: Request, response: Response, cursor: str | None) -> None:
    """Say in a header where the next page is, for answers that are lists; on the path, for proxies change the rest."""
    if cursor is not None:
        following = request.url.include_query_params(cursor=cursor)
        response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
