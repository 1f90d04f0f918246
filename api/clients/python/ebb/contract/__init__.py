"""The contract: what Ebb can be asked to do, declared once for task, HTTP, command line, tools and clients."""

from ebb.contract import documents, facts, graph, recall, reports, retention

__all__ = ["documents", "facts", "graph", "recall", "reports", "retention"]
