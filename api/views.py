"""What people look at: how one fact fades, what it is linked with, and how a namespace has changed."""

from api.transport import RECALL_SECONDS, Answer, Sender


class Viewer(Sender):
    """Whoever wants to see, and changes nothing by that."""

    def curve(self, id: str) -> Answer:  # noqa: A002 - the contract's name
        """Return how a fact faded and will fade: `at` with its `salience` and `confidence` at each instant.

        Beside that `{"now", "from", "since", "until", "hits", "whole", "tiers", "changes", "ends_at", "ends_for",
        "strength", "pinned"}`; `hits` are the newest 16 uses with the salience before and after each, `whole` says
        whether there were no earlier ones, `since` is the last; instants are epoch seconds.

        Raises:
            NotFoundError: the namespace never had such a fact, or it was purged.
        """
        return self.call("memory.curve", {"id": id, "namespace": self.namespace}, RECALL_SECONDS)

    def neighbours(self, id: str, most: int = 20) -> Answer:  # noqa: A002 - the contract's name
        """Return `{"facts", "links", "total"}`: up to `most` facts that one is linked with, and the links among all."""
        return self.call("memory.neighbours", {"id": id, "namespace": self.namespace, "most": most}, RECALL_SECONDS)

    def course(self, days: int = 14) -> Answer:
        """Return how what the namespace holds has changed over so many days, as far as that was noted.

        `{"at", "tiers", "fidelity", "classes", "forgotten", "due"}`: instants in epoch seconds, and for each name a
        list of how many facts there were at each.
        """
        return self.call("memory.course", {"namespace": self.namespace, "days": days}, RECALL_SECONDS)

    def system_course(self, days: int = 14) -> Answer:
        """Return how the whole system kept up over so many days: `{"at", "waiting", "half", "most"}`.

        For each of the instants, in epoch seconds, it tells how many tasks waited in each queue, and within how many
        seconds half and 19 of 20 of the writes before it could be read.
        """
        return self.call("memory.system_course", {"days": days}, RECALL_SECONDS)

    def namespaces(self, prefix: str = "", limit: int = 100) -> Answer:
        """Return `{"namespaces"}`: the names of all that begin so, in order, up to `limit`."""
        return self.call("memory.namespaces", {"prefix": prefix, "limit": limit}, RECALL_SECONDS)
