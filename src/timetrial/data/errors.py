"""What can be wrong with a dataset, in a module that loads nothing."""

from __future__ import annotations


class DataError(ValueError):
    """A dataset cannot be used as asked: it does not fit the network, is too small, damaged, or not there."""
