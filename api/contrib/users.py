"""Users of other products: each has a namespace, whose name is their own wherever that can be one.

A user_id that can be no name, as it has blanks or `|`, say, becomes `u::` and its UTF-8, in which each byte but those
of letters, digits and `. _ @ -` is written as `+` and two hexadecimal digits: `auth0|5f7c` has the namespace
`u::auth0+7C5f7c`. What begins with `u::` itself is written so too. So no two users have one namespace, and each
namespace identifies its user.
"""

import re

from workers.errors import InvalidInputError
from workers.validation import namespace_name

PREFIX = "u::"
WRITTEN = re.compile(r"(?:[A-Za-z0-9._@-]|\+[0-9A-F]{2})*")
ESCAPE = re.compile(rb"\+([0-9A-F]{2})")
OTHERS = re.compile(rb"[^A-Za-z0-9._@-]")


def namespace_of(user: str) -> str:
    """Return the namespace of a user.

    Raises:
        InvalidInputError: their name is too long for one.
    """
    try:
        return namespace_name(user if not user.startswith(PREFIX) else None)
    except InvalidInputError:
        return _written(user)


def user_of(namespace: str) -> str:
    """Return the user whose namespace it is, who has its name unless another user's was written so."""
    written = namespace.removeprefix(PREFIX)
    if written == namespace or not WRITTEN.fullmatch(written):
        return namespace
    try:
        user = ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), written.encode()).decode()
        return user if namespace_of(user) == namespace else namespace
    except (UnicodeDecodeError, InvalidInputError):
        return namespace


def _written(user: str) -> str:
    # Half a character is refused where it is written, and cannot be a user's name here either.
    escaped = OTHERS.sub(lambda found: b"+%02X" % found[0][0], user.encode(errors="surrogatepass")).decode()
    try:
        return namespace_name(PREFIX + escaped)
    except InvalidInputError:
        raise InvalidInputError(
            f"user_id: {ascii(user)[:80]} is too long for the name of a namespace, as which it is "
            f"{len(PREFIX + escaped)} characters long, more than 128; give a shorter one."
        ) from None
