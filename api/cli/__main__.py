"""`python -m api.cli`: the command `ebb`, where it is not installed."""

from api.cli import main

main()
