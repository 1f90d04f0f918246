"""Help: the Markdown pages of `api/docs`, rendered once, public, and available while other parts are down."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from posixpath import dirname, join, normpath, splitext
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request, Response
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from starlette.staticfiles import StaticFiles

from api.http.dashboard.rendering import no_page, page, router

FOLDER = Path(__file__).parents[2] / "docs"
INDEX = "README"
"""The page at `/help`, whose links are the table of contents."""

ADDRESS = "/help"
NO_SLUG = re.compile(r"[^\w\- ]")


@dataclass(frozen=True, slots=True)
class HelpPage:
    """One page with its title, HTML, and (address, title) of its links to other pages."""

    title: str
    html: str
    links: tuple[tuple[str, str], ...]


@cache
def names() -> list[str]:
    """Return the names of all pages: paths without `.md`."""
    return sorted(path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.md"))


def read(name: str) -> HelpPage | None:
    """Return the page with that name; None if there is no such file."""
    return _rendered(name) if name in names() else None


@cache
def _rendered(name: str) -> HelpPage:
    parser = _parser()
    tokens = parser.parse((FOLDER / f"{name}.md").read_text(encoding="utf-8"))
    links = tuple(_rewritten(tokens, dirname(name)))
    title = next((tokens[place + 1].content for place, one in enumerate(tokens) if one.tag == "h1"), name)
    return HelpPage(title, parser.renderer.render(tokens, parser.options, {}), links)


def contents() -> tuple[tuple[str, str], ...]:
    """Return (address, title) of each page, in the order of the index."""
    index = read(INDEX)
    return ((ADDRESS, "Help"), *(index.links if index else ()))


def slug(heading: str) -> str:
    """Return the anchor of a heading, in the format of GitHub."""
    return NO_SLUG.sub("", heading.replace("`", "").lower()).replace(" ", "-")


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", lambda *_: "</table>\n</div>\n")
    for part in ("th_open", "th_close"):
        parser.add_render_rule(part, _heading)
    parser.add_render_rule("fence", _code)
    return parser


def _code(renderer: RendererHTML, *given: Any) -> str:
    """Return a block of code that the keyboard reaches, so that it can be scrolled."""
    return RendererHTML.fence(renderer, *given).replace("<pre>", '<pre tabindex="0">', 1)


def _open_table(_: object, tokens: Sequence[Token], place: int, *__: object) -> str:
    """Return the start of a table, in a region that scrolls and is named by the table's number and headings."""
    number = sum(token.type == "table_open" for token in tokens[: place + 1])
    end = next(at for at in range(place, len(tokens)) if tokens[at].type == "thead_close")
    headings = ", ".join(token.content for token in tokens[place:end] if token.type == "inline" and token.content)
    name = escape(f"Table {number}: {headings}".removesuffix(": "))
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{name}">\n<table>\n'


def _heading(renderer: RendererHTML, tokens: Sequence[Token], place: int, options: Any, _: object) -> str:
    """Return the start or end of a heading of a table; one without text is a cell, as it names no column."""
    text = tokens[place + 1 if tokens[place].nesting > 0 else place - 1]
    return renderer.renderToken(tokens, place, options, {}).replace("th", "th" if text.content else "td", 1)


def _rewritten(tokens: list[Token], folder: str) -> list[tuple[str, str]]:
    """Set the anchors of headings and the addresses of links; return the links to other pages."""
    links: list[tuple[str, str]] = []
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", slug(tokens[place + 1].content))
        children = token.children or []
        for at, child in enumerate(children):
            if child.type == "image":
                child.attrSet("src", f"{ADDRESS}/{child.attrGet('src')}")
            elif child.type == "link_open":
                target = address(str(child.attrGet("href")), folder)
                child.attrSet("href", target)
                if target.startswith(ADDRESS) and "#" not in target:
                    links.append((target, children[at + 1].content))
    return links


def address(link: str, folder: str = "") -> str:
    """Return the address at `/help` of a relative link in a page of a folder."""
    parts = urlsplit(link)
    name, kind = splitext(parts.path)
    if parts.scheme or kind != ".md":
        return link
    place = normpath(join(folder, name))
    target = ADDRESS if place == INDEX else f"{ADDRESS}/{place}"
    return f"{target}#{parts.fragment}" if parts.fragment else target


routes = router()

IMAGES = StaticFiles(directory=FOLDER / "images")


@routes.get("/docs")
def operations(request: Request) -> Response:
    """Show every operation of the HTTP API by its OpenAPI document, to be read and tried."""
    return page(request, "docs.html", open_to_everyone=True)


@routes.get("/help")
def index(request: Request) -> Response:
    """Show the table of contents."""
    return subject(INDEX, request)


@routes.get("/help/images/{path:path}")
async def image(path: str, request: Request) -> Response:
    """Return an image of a page."""
    response = await IMAGES.get_response(path, request.scope)
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


@routes.get("/help/{name:path}")
def subject(name: str, request: Request) -> Response:
    """Show one page."""
    found = read(name)
    if found is None:
        return no_page(request, f"There is no help page {name!r}. See /help for all of them.")
    return page(request, "help.html", article=found, contents=contents(), open_to_everyone=True)
