"""Frameworks that an adapter is for: present, or their tests are skipped with what installs them."""

import warnings
from importlib import import_module

import pytest


def need(extra: str, *modules: str) -> None:
    """Load a framework, whatever it warns of; without it skip the tests of a module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in modules:
            try:
                import_module(module)
            except ModuleNotFoundError as error:
                pytest.skip(
                    f"{error.name} is not installed: pip install --editable 'api/clients/python[{extra}]'",
                    allow_module_level=True,
                )
