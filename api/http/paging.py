"""Paging: the size of a page, and the cursor of the next one."""

from typing import Annotated

from fastapi import Query, Response
from starlette.datastructures import URL

from api.http import schemas

Limit = Annotated[int, Query(ge=1, le=schemas.MOST_RESULTS, description="most items of the page")]
Cursor = Annotated[str | None, Query(description="the `next` of the page before; without it the first page")]


def link_next(url: URL, response: Response, cursor: str | None) -> None:
    """Set the header that links to the next page; only its path, because proxies change the rest."""
    if cursor is not None:
        following = url.include_query_params(cursor=cursor)
        response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
