"""Energy-delay products: from their definition, over processes, and held against a published table."""

from __future__ import annotations

import pytest

from timetrial.stats.energy import above_idle, edp, relative, total

# A published table of four experiments: joules of the devices that take part, joules with idle devices, and both
# energy-delay products as multiples of the second experiment's.
TABLE = {
    "CPU only": (8.48e6, 1.11e7, 86.65, 103.79),
    "1 GPU": (1.17e6, 1.28e6, 1.00, 1.00),
    "1 GPU distributed": (1.18e6, 1.29e6, 1.02, 1.02),
    "2 GPUs": (1.15e6, 1.15e6, 0.56, 0.51),
}
# How long each took, as a multiple of the second. It is not printed; these figures agree with both columns.
TIMES = {"CPU only": 11.97, "1 GPU": 1.0, "1 GPU distributed": 1.0115, "2 GPUs": 0.5685}
JOULES_DIGITS = 3


@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("name", TABLE)
def test_one_time_gives_both_published_products(name: str, column: int) -> None:
    """Within what rounding of the printed energies leaves open."""
    own, reference = TABLE[name][column], TABLE["1 GPU"][column]
    found = edp(TIMES[name], [own]) / edp(1.0, [reference])
    open_ = 0.0 if name == "1 GPU" else rounding(own) + rounding(reference)
    assert found == pytest.approx(TABLE[name][column + 2], rel=open_, abs=0.005)


def test_the_published_products_are_of_other_times_than_the_published_speedups() -> None:
    """11.8 is the printed speed-up of the GPU: with it the product is smaller than the printed one by a percent."""
    found = edp(11.8, [TABLE["CPU only"][0]]) / edp(1.0, [TABLE["1 GPU"][0]])
    assert found == pytest.approx(85.5, abs=0.1)
    assert found < 86.65 * (1 - rounding(TABLE["CPU only"][0]) - rounding(TABLE["1 GPU"][0]))


def rounding(value: float) -> float:
    """Half a unit of the last printed digit, relative."""
    return 0.5 * 10.0 ** (int(f"{value:e}".split("e")[1]) - JOULES_DIGITS + 1) / value


def test_the_product_is_of_all_devices_together() -> None:
    assert edp(2.0, [3.0, 4.0]) == 14.0
    assert edp(2.0, []) == 0.0


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    assert total([1.0, 2.0]) == 3.0
    assert total([1.0, None]) is None
    assert total([]) is None


def test_idle_power_is_taken_off_for_the_time_of_the_window() -> None:
    assert above_idle(100.0, 16.0, 5.0) == 20.0
    assert above_idle(100.0, 25.0, 5.0) == -25.0  # less than its own noise, and not cut off at nothing


def test_products_are_multiples_of_the_named_reference() -> None:
    found = relative({"a": [2.0, 2.0], "b": [4.0, 4.2], "c": [1.0]}, "a")
    assert found["a"].value == 1.0
    assert found["b"].value == pytest.approx((4.0 * 4.2) ** 0.5 / 2)
    assert found["b"].low is not None and found["b"].high is not None
    assert found["b"].low < found["b"].value < found["b"].high
    assert (found["c"].value, found["c"].low) == (pytest.approx(0.5), None)  # of one process there is no interval
    assert relative({"a": [2.0], "b": [4.0]}, "b")["a"].value == pytest.approx(0.5)
