"""Who runs next: complete blocks, then what is not known well enough, and never more than there was time for."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from timetrial.runner import design
from timetrial.runner.design import Design, Member, block, order, unfinished

NORMAL = Design(usual=10, target=0.005)


def cells(*names: str, group: str = "g") -> list[Member]:
    return [Member(name, group) for name in names]


def times(centre: float, spread: float, count: int, seed: int = 0) -> list[float]:
    """With exactly this standard deviation of the logs, so that a test does not hang on a draw."""
    draw = np.random.default_rng(seed).standard_normal(count)
    draw = (draw - draw.mean()) / draw.std(ddof=1)
    return [float(value) for value in centre * np.exp(spread * draw)]


# --- order ------------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_a_block_holds_everyone_once_in_an_order_that_can_be_repeated(count: int, number: int, seed: int) -> None:
    members = cells(*map(str, range(count)))
    found = order(members, seed, number)
    assert Counter(found) == Counter(members)
    assert order(members, seed, number) == found


def test_every_place_of_a_block_is_taken_by_everyone() -> None:
    """No engine is always the first, in whose turn the machine is still cold."""
    firsts = Counter(order(cells("a", "b", "c", "d"), 1, number)[0].trial for number in range(400))
    assert set(firsts) == {"a", "b", "c", "d"}
    assert all(60 <= count <= 145 for count in firsts.values())  # 100 each, five deviations wide


def test_two_take_turns_as_abba_so_that_a_steady_drift_cancels() -> None:
    places = {"a": 0, "b": 0}
    for number in range(8):
        for position, member in enumerate(order(cells("a", "b"), 7, number)):
            places[member.trial] += 2 * number + position
    assert places["a"] == places["b"]


# --- who takes part ---------------------------------------------------------------------------------------------------


def test_the_first_three_blocks_are_complete_whatever_is_known() -> None:
    members = cells("a", "b")
    results = {member: times(1.0, 1e-6, 3) for member in members}
    assert all(block(number, members, results, NORMAL, 0.01) == members for number in range(3))
    assert block(3, members, results, NORMAL, 0.01) == []


def test_who_is_known_well_enough_is_left_out() -> None:
    narrow, wide = cells("narrow", "wide")
    results = {narrow: times(1.0, 0.0005, 4), wide: times(1.0, 0.05, 4)}
    assert block(4, [narrow, wide], results, NORMAL, 0.01) == [wide]


def test_what_is_decided_need_not_be_as_narrow() -> None:
    """The slower is three times slower: nothing more is to be learned of them than their intervals show already."""
    fast, slow = cells("fast", "slow")
    results = {fast: times(1.0, 0.01, 4), slow: times(3.0, 0.01, 4)}
    assert 0.005 < design.width(results[fast]) < 0.025
    assert unfinished([fast, slow], results, NORMAL, 0.01) == []
    near = {fast: results[fast], slow: times(1.01, 0.01, 4)}
    assert unfinished([fast, slow], near, NORMAL, 0.01) == [fast, slow]


def test_a_cell_alone_in_its_group_goes_on_until_it_is_narrow() -> None:
    alone, other = Member("alone", "g"), Member("other", "h")
    results = {alone: times(1.0, 0.01, 4), other: times(9.0, 0.0001, 4)}
    assert block(4, [alone, other], results, NORMAL, 0.01) == [alone]


def test_what_was_saved_goes_to_the_widest_and_no_further() -> None:
    members = cells("early", "wide", "wider")
    early, wide, wider = members
    results = {early: times(1.0, 1e-5, 3), wide: times(5.0, 0.05, 10), wider: times(9.0, 0.2, 10)}
    assert block(10, members, results, NORMAL, 0.01) == [wide, wider]  # seven runs are saved
    spent = {early: times(1.0, 1e-5, 3), wide: times(5.0, 0.05, 13), wider: times(9.0, 0.2, 13)}
    assert block(13, members, spent, NORMAL, 0.01) == [wider]  # one is left, and the widest has it
    over = {**spent, wider: times(9.0, 0.2, 14)}
    assert block(14, members, over, NORMAL, 0.01) == []


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0.0001, 0.3), min_size=1, max_size=6), st.integers(0, 1000))
def test_no_more_runs_are_made_than_the_fixed_design_would(spreads: list[float], seed: int) -> None:
    members = cells(*map(str, range(len(spreads))))
    plan, results = Design(usual=5, target=0.01), {member: list[float]() for member in members}
    for number in range(100):
        taking_part = block(number, members, results, plan, 0.01)
        if not taking_part:
            break
        for at, member in enumerate(taking_part):
            spread = spreads[int(member.trial)]
            draw = np.random.default_rng([seed, number, at]).standard_normal()
            results[member].append(float(np.exp(spread * draw)))
    counts = [len(values) for values in results.values()]
    assert sum(counts) <= 5 * len(members)
    assert min(counts) >= 3
    assert max(counts) <= 10


def test_a_fixed_design_is_as_long_as_it_says() -> None:
    plan, members = Design(usual=4, target=0.01, adaptive=False), cells("a", "b")
    results = {member: times(1.0, 1e-6, 4) for member in members}
    assert [len(block(number, members, results, plan, 0.01)) for number in range(6)] == [2, 2, 2, 2, 0, 0]


def test_the_twin_goes_where_its_anchor_goes() -> None:
    anchor, other = cells("anchor", "other")
    twin = Member("anchor", "g", "twin")
    results = {anchor: times(1.0, 0.05, 4), twin: times(1.0, 0.05, 4), other: times(9.0, 0.0001, 4)}
    assert block(4, [anchor, other, twin], results, NORMAL, 0.01) == [anchor, twin]
