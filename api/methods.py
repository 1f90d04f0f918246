"""Methods of the client that follow from the contract: one line for each operation."""

from collections.abc import Callable
from typing import Any

from ebb.contract.operation import Operation

from api.transport import Answer, Sender


class Method:
    """A method of a client that has an operation done.

    It takes the operation's parameters by name, or in their order; writes also take `wait`, see `Sender.write`.
    """

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.__doc__ = operation.params.__doc__

    def __get__(self, client: Sender, _owner: type[Sender]) -> Callable[..., Answer]:
        """Return the method of one client."""

        def call(*positional: Any, wait: bool = True, **named: Any) -> Answer:
            return client.perform(self.operation, self.operation.arguments(positional, named), wait=wait)

        return call
