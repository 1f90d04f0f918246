"""`ebb mcp`: memory as tools of an agent that starts this command and talks with it over stdin and stdout."""

from collections.abc import Callable

from api.cli import output
from api.cli.connection import NamespaceName, client


def mcp(namespace: NamespaceName = None, home: output.HomeFolder = None) -> None:
    """Serve memory to an agent over MCP, on stdin and stdout, until it ends; the system must be up."""
    from api.mcp.server import make_server  # noqa: PLC0415 - the SDK takes a while to load
    from api.mcp.tool import Opened  # noqa: PLC0415

    with client(home, namespace) as memory:
        make_server(lambda _request, _scope: Opened(memory)).run("stdio")


COMMANDS: dict[str, Callable[..., None]] = {"mcp": mcp}
