"""What a reader may do with damaged files: read them, or say in a sentence what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, settings

from timetrial.data.samples import DataError

SAME_FOLDER = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


def refused(read: Callable[[], object]) -> str:
    with pytest.raises(DataError) as caught:
        read()
    message = str(caught.value)
    assert "\n" not in message
    return message


def survives(read: Callable[[], object]) -> None:
    """Damage may happen to mean something; if it does not, it is a DataError and nothing else."""
    with suppress(DataError):
        read()
