"""The contract: what Ebb can be asked to do, declared once for task, HTTP, command line, tools and clients."""
