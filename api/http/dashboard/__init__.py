"""The dashboard: pages rendered on the server from the answers of the same tasks that all interfaces send.

To add a page:

1. a module here with `routes = router()` and a plain `def` that takes `request: Request` and `memory: Reading` (a
   session for the visitor's namespace, see `visitors`) and returns `page(request, "name.html", …)`, see `rendering`;
2. `templates/name.html`, which extends `base.html` and fills the blocks `title` and `main`; macros for cards, bars,
   empty states, pagers and charts are in `parts.html`. All text is escaped. Nothing is allowed inline: no `style=`, no
   `<style>`, no `<script>` but data (`type="application/json"`);
3. an entry in `PAGES` below and, for the menu, in `rendering.NAVIGATION`;
4. its route in `tests/acceptance/test_http_keys.py`, and its path in the browser's tests.

Errors need no code: an `EbbError` is shown as a page with its status. Styles are in `static/ebb.css`, scripts in
`static/ebb.js`; a chart is a `<figure data-chart="…">` that contains its numbers as JSON.
"""

from api.http.dashboard import facts, help_pages, keys, overview, playground, relations, rendering, review, visitors

PAGES = (overview, facts, playground, relations, review, keys, visitors, help_pages, rendering)
"""Modules of routes; the last one answers all other addresses."""
