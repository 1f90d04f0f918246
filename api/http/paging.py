"""Paging: where the next page of a listing is."""

from fastapi import Response
from starlette.datastructures import URL


def link_next(url: URL, response: Response, cursor: str | None) -> None:
    """Set the header that links to the next page; only its path, because proxies change the rest."""
    if cursor is not None:
        following = url.include_query_params(cursor=cursor)
        response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
