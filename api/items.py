"""Items: documents kept whole under a path and key, as stores of agent frameworks keep them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from api.transport import RECALL_SECONDS, Answer, Sender


class Keeper(Sender):
    """One namespace's items. A path is a list of labels; what is kept below one is found by its beginning."""

    def put_item(
        self,
        path: Sequence[str],
        key: str,
        document: Mapping[str, Any],
        *,
        text: str | None = None,
        ttl: float | None = None,
        wait: bool = True,
    ) -> Answer:
        """Keep a document in place of what is there; return `{"id"}`. It comes back exactly as it was given.

        It is found by its `text`, if there is one. With a `ttl`, in minutes, it is over when it was not used for so
        long; else it stays until it is dropped.
        """
        arguments = {"path": list(path), "key": key, "document": json.dumps(document), "text": text, "ttl": ttl}
        return self.write("memory.put_item", arguments | {"namespace": self.namespace, "now": None}, wait=wait)

    def items(
        self,
        path: Sequence[str] = (),
        *,
        key: str | None = None,
        query: str | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's name
        limit: int = 10,
        offset: int = 0,
        refresh: bool = True,
    ) -> Answer:
        """Return `{"items"}` below a path, the newest first, or with a query the best; or the one with a `key`.

        Each is `{"path", "key", "document", "created_at", "updated_at", "score"}`; `document` is JSON, and `score` in
        [0, 1], or nothing without query. A `filter` has fields with values or operators ($eq, $ne, $gt, $gte, $lt,
        $lte). To be returned is use, unless `refresh` is false.
        """
        arguments = {
            "path": list(path),
            "key": key,
            "query": query,
            "filter": None if filter is None else dict(filter),
            "limit": limit,
            "offset": offset,
            "refresh": refresh,
        }
        return self.call("memory.items", arguments | {"namespace": self.namespace}, RECALL_SECONDS)

    def drop_item(self, path: Sequence[str], key: str, *, wait: bool = True) -> Answer:
        """Forget what is kept under a path and key; return `{"dropped"}`, whether there was something."""
        arguments = {"path": list(path), "key": key, "namespace": self.namespace, "now": None}
        return self.write("memory.drop_item", arguments, wait=wait)

    def item_paths(self) -> Answer:
        """Return `{"paths"}`, every path under which something is kept."""
        return self.call("memory.item_paths", {"namespace": self.namespace}, RECALL_SECONDS)
