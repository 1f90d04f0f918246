"""Frameworks for which there are adapters; without one its tests are skipped, and `make frameworks` runs them."""

import warnings
from importlib import import_module

import pytest


def need(*modules: str) -> None:
    """Import a framework, ignoring its warnings; skip the module's tests if it is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in modules:
            try:
                import_module(module)
            except ModuleNotFoundError as error:
                pytest.skip(f"{error.name} is not installed: make frameworks", allow_module_level=True)
