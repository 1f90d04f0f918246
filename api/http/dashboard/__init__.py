"""The dashboard: pages rendered on the server from the answers of the same tasks that all interfaces send.

To add a page:

1. a module here with `routes = router()` and a plain `def` that takes `request: Request` and `memory: Reading` (a
   session for the visitor's namespace, see `visitors`) and returns `page(request, "name.html", …)`, see `rendering`;
2. `templates/name.html`, which extends `base.html` and fills the blocks `title` and `main`; macros for cards, bars,
   empty states, pagers and charts are in `parts.html`. All text is escaped. Nothing is allowed inline: no `style=`, no
   `<style>`, no `<script>` but data (`type="application/json"`);
3. its place in `PAGES` below and, if it is to be found there, in `rendering.NAVIGATION`;
4. its route in the walk of `tests/acceptance/test_http_keys.py`, and its path in the one of the browser's tests.

Errors need no code: the message of an `EbbError` is shown as a page, with its status. Styles are in `static/ebb.css`,
what moves in `static/ebb.js`; a chart is a `<figure data-chart="…">` with its numbers as JSON in it, see there.
"""

from api.http.dashboard import (
    actions,
    decay,
    facts,
    help_pages,
    overview,
    playground,
    relations,
    rendering,
    review,
    visitors,
)

PAGES = (overview, facts, playground, decay, relations, review, actions, visitors, help_pages, rendering)
"""Modules of routes; the last one answers all other addresses."""
