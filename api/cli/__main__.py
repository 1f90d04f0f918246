"""`python -m api.cli` is the command `ebb`, wherever that is not installed."""

from api.cli import main

main()
