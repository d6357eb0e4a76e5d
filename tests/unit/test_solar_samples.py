"""From a grid to samples: times, splits, scales, maps, baselines, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.test_solar_grids import archive, grid, moment, real
from timetrial import zoo
from timetrial.data.prepare import prepare
from timetrial.data.registry import find
from timetrial.data.samples import DataError
from timetrial.data.solar import maps, melpitz, scale, synthetic
from timetrial.data.solar.compose import Parts, ask, compose
from timetrial.data.solar.grid import SECOND, Grid
from timetrial.data.solar.settings import COMPOSING, LEFT_OUT, Settings
from timetrial.data.solar.synthetic import Scene

PLAIN = Settings(horizon=2, scale="none", target="b")


def counting(rows: int = 40, sensors: int = 3, **changes: Any) -> Grid:
    """Sensor j at second i has i + 100 j: every value says where it is from."""
    return grid(np.arange(rows)[:, None] + 100 * np.arange(sensors), **changes)


def all_parts(parts: Parts) -> list[Any]:
    return [parts.train, parts.validation, parts.test]


# --- what is seen and what is predicted -------------------------------------------------------------------------------


def test_a_sample_is_all_sensors_now_and_one_of_them_a_horizon_later() -> None:
    parts = compose(counting(), PLAIN)
    assert parts.train.x[5].tolist() == [5, 105, 205]
    assert parts.train.y[5] == 107
    assert parts.train.y.ndim == 1
    assert parts.train.guesses["persistence"][5] == 105
    assert (parts.inputs, parts.targets) == (("a", "b", "c"), ("b",))


def test_the_target_may_be_left_out_of_what_is_seen() -> None:
    parts = compose(counting(), replace(PLAIN, rule=LEFT_OUT))
    assert parts.train.x[5].tolist() == [5, 205]
    assert parts.inputs == ("a", "c")


def test_all_sensors_at_one_instant_are_as_many_samples() -> None:
    parts = compose(counting(), replace(PLAIN, rule=LEFT_OUT, target="all"))
    assert parts.train.x[3:6].tolist() == [[101, 201], [1, 201], [1, 101]]
    assert parts.train.y[3:6].tolist() == [3, 103, 203]
    assert parts.train.targets[3:6].tolist() == [0, 1, 2]
    assert parts.inputs == ()  # not the same for all


def test_without_a_name_the_target_is_the_sensor_in_the_middle() -> None:
    made = counting(sensors=3, longitude=np.array([-158.0, -158.0, -158.0]))
    assert compose(made, replace(PLAIN, target="")).targets == ("b",)


def test_features_are_drawn_by_the_seed_and_never_the_target_that_is_left_out() -> None:
    made = counting(sensors=12)
    drawn = {seed: compose(made, replace(PLAIN, features=4, seed=seed, rule=LEFT_OUT)).inputs for seed in range(20)}
    assert all(len(set(names)) == 4 and "b" not in names for names in drawn.values())
    assert len(set(drawn.values())) > 5
    assert compose(made, replace(PLAIN, features=4, seed=3, rule=LEFT_OUT)).inputs == drawn[3]


def test_training_samples_are_drawn_by_the_seed_and_stay_in_order() -> None:
    whole, some = compose(counting(100), PLAIN), compose(counting(100), replace(PLAIN, take=10))
    assert len(some.train) == 10
    assert np.all(np.diff(some.train.seen) > 0)
    assert set(some.train.seen) <= set(whole.train.seen)
    assert np.array_equal(some.test.seen, whole.test.seen)
    other = compose(counting(100), replace(PLAIN, take=10, seed=2))
    assert not np.array_equal(some.train.seen, other.train.seen)


def test_one_sample_in_some_seconds() -> None:
    parts = compose(counting(100), replace(PLAIN, every=7))
    seen = np.concatenate([part.seen for part in all_parts(parts)])
    assert set(np.diff(seen)) == {7 * SECOND}


def test_gaps_in_time_are_not_jumped_over() -> None:
    times = counting(60).times.copy()
    times[30:] += 100 * SECOND
    parts = compose(counting(60, times=times), PLAIN)
    for part in all_parts(parts):
        assert np.all(part.predicted - part.seen == 2 * SECOND)
    assert not {28, 29} & {int(x[0]) for part in all_parts(parts) for x in part.x}


# --- nothing of the future --------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    # With fewer rows a part may be shorter than the horizon, which is refused.
    rows=st.integers(160, 300), horizon=st.integers(1, 9), every=st.integers(1, 4), train=st.floats(0.4, 0.7),
    validation=st.sampled_from([0.0, 0.15]), seed=st.integers(0, 50), holes=st.integers(0, 20),
)  # fmt: skip
def test_parts_follow_each_other_and_never_overlap(
    rows: int, horizon: int, every: int, train: float, validation: float, seed: int, holes: int
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.uniform(100, 900, (rows, 4))
    values[rng.integers(0, rows, holes), rng.integers(0, 4, holes)] = np.nan
    parts = compose(grid(values), Settings(horizon=horizon, every=every, train=train, validation=validation, seed=seed))
    used = [part for part in all_parts(parts) if len(part)]
    assert len(used) == (3 if validation else 2)
    for part in used:
        assert np.all(part.predicted - part.seen == horizon * SECOND)
        assert np.isfinite(part.x).all() and np.isfinite(part.y).all()
    for earlier, later in pairwise(used):
        assert earlier.predicted.max() < later.seen.min()
    assert (parts.train.x.min(), parts.train.x.max()) == pytest.approx((0, 1), abs=1e-6)


def test_the_scale_is_fitted_on_the_training_part_only() -> None:
    values = np.random.default_rng(0).uniform(100, 200, (200, 3))
    values[150:] += 500
    for kind in ("minmax", "standard"):
        with_step = compose(grid(values), Settings(horizon=2, scale=kind))
        changed = values.copy()
        changed[150:] *= 3
        assert compose(grid(changed), Settings(horizon=2, scale=kind)).scale == with_step.scale
    low, high = np.float32(values[:138]).min(), np.float32(values[:138]).max()
    fitted = compose(grid(values), Settings(horizon=2)).scale
    assert (fitted.offset, fitted.unit) == pytest.approx((low, high - low))
    assert compose(grid(values), Settings(horizon=2)).test.x.max() > 5  # what was not seen is not squeezed in


@settings(deadline=None)
@given(st.floats(-100, 100), st.floats(1, 2000), st.lists(st.floats(0, 1500), min_size=1))
def test_a_scale_can_be_undone(offset: float, unit: float, values: list[float]) -> None:
    fitted = scale.Scale(offset, unit)
    assert fitted.undo(fitted.apply(np.array(values))) == pytest.approx(np.array(values), abs=1e-3 * unit, rel=1e-4)


def test_interpolation_fills_short_gaps_only() -> None:
    values = counting(100).values.copy()
    values[10:13, 0] = np.nan
    values[40:60, 1] = np.nan
    values[:2, 2] = np.nan
    kept = compose(grid(values), replace(PLAIN, missing="interpolate", gap=5))
    rows = {float(x[0]): x.tolist() for part in all_parts(kept) for x in part.x}
    assert rows[11] == [11, 111, 211]
    assert not {0.0, 1.0, 38.0, 45.0} & rows.keys()
    dropped = compose(grid(values), PLAIN)
    assert not {8.0, 11.0} & {float(x[0]) for part in all_parts(dropped) for x in part.x}


# --- daylight ---------------------------------------------------------------------------------------------------------


def test_only_instants_with_sun_are_taken() -> None:
    start = moment("2010-08-02T04:40:00")[0]  # the sun goes down over Oahu
    made = counting(3600, times=start + np.arange(3600) * SECOND)
    ends = {
        limit: max(part.predicted.max() for part in all_parts(compose(made, replace(PLAIN, elevation=limit))))
        for limit in (-90.0, 0.0, 4.0)
    }
    assert ends[-90.0] == made.times[-1]
    assert ends[4.0] < ends[0.0] < ends[-90.0]
    with pytest.raises(DataError, match=r"made\.csv: from 2010-08-02 04:40:00 UTC .* there is no daylight"):
        compose(made, replace(PLAIN, elevation=30.0))
    bright = compose(made, replace(PLAIN, elevation=-90.0, least=3600))
    assert bright.train.x[0].tolist() == [3500, 3600, 3700]


# --- what is refused --------------------------------------------------------------------------------------------------

HOLED = counting().values.copy()
HOLED[7, 1] = np.nan
EMPTY = counting().values.copy()
EMPTY[:, 2] = np.nan


@pytest.mark.parametrize(("made", "changes", "words"), [
    (counting(), {"horizon": 40}, "holds 39 s, which is less than the horizon of 40 s"),
    (counting(), {"target": "z"}, "there is no sensor 'z'; there are a, b, c"),
    (counting(), {"features": 4}, "4 features were asked for, but 3 of its 3 sensors can be seen"),
    (counting(), {"features": 3, "rule": LEFT_OUT}, "but 2 of its 3 sensors can be seen with rule=leave-target-out"),
    (counting(sensors=1), {"target": "a", "rule": LEFT_OUT}, "0 of its 1 sensors can be seen"),
    (counting(), {"take": 1000}, "take=1000 asks for more than the"),
    (counting(step=60), {"horizon": 10}, "no two usable instants are 10 s apart (rows come every 60 s"),
    (grid(HOLED), {"missing": "refuse"}, "sensor b has no value at 2010-08-01 22:00:07 UTC, the first of 1 missing"),
    (grid(EMPTY), {}, "sensor c has not one value; remove its column"),
    (grid(np.where(np.eye(40, 3)[::-1] + 1 > 1, 5.0, np.nan)[:3]), {"horizon": 1}, "has not one value"),
    (grid(np.full((40, 3), 7.0)), {"scale": "minmax"}, "all values of the training part are 7 W/m², so that there is no"),
    (counting(12), {"horizon": 9}, "leave none for the training"),
    (counting(latitude=np.full(3, np.nan), longitude=np.full(3, np.nan)), {}, "no sensor has a position"),
])  # fmt: skip
def test_what_cannot_be_done_is_said_with_its_place(made: Grid, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError) as caught:
        compose(made, replace(PLAIN, **changes))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_row_with_a_hole_somewhere_is_no_row() -> None:
    values = counting(6).values.copy()
    values[::2, 0] = values[1::2, 1] = np.nan
    with pytest.raises(DataError, match="no instant by day has a value of every sensor; write missing=interpolate"):
        compose(grid(values), PLAIN)


@pytest.mark.parametrize(("changes", "words"), [
    ({"train": 0.9, "validation": 0.1}, "leave nothing for the test"),
    ({"train": 0.0}, "leave nothing for the test"),
    ({"validation": 0.0, "score": "validation"}, "score=validation wants a validation part"),
])  # fmt: skip
def test_shares_that_do_not_add_up(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        Settings(**changes)


# --- names ------------------------------------------------------------------------------------------------------------


def test_options_stand_in_the_name_and_are_written_in_one_way() -> None:
    found = find("hope-melpitz?rule=leave-target-out&horizon=30&every=0&train=0.70")
    assert found.name == "hope-melpitz?horizon=30&rule=leave-target-out"
    assert not found.synthetic
    made = find("solar-synthetic?days=2&horizon=10&wind=4")
    assert (made.name, made.synthetic, made.made_to_measure) == ("solar-synthetic?days=2&wind=4", True, False)
    assert find("oahu").state == "absent"


@pytest.mark.parametrize(("name", "words"), [
    ("hope-melpitz?horizont=3", "has no option 'horizont'; its options are horizon, target, "),
    ("hope-melpitz?wind=3", "has no option 'wind'"),
    ("hope-melpitz?horizon", "has 'horizon', which is no option=value"),
    ("hope-melpitz?horizon=0", "option 'horizon' is at least 1, not 0"),
    ("hope-melpitz?horizon=soon", "option 'horizon' wants a whole number, not 'soon'"),
    ("hope-melpitz?rule=none-at-all", "option 'rule' is one of all, leave-target-out, not 'none-at-all'"),
    ("hope-melpitz?train=0.9", "train=0.9 and validation=0.1 leave nothing"),
])  # fmt: skip
def test_options_that_cannot_be_are_refused(name: str, words: str) -> None:
    with pytest.raises(DataError) as caught:
        find(name)
    assert words in str(caught.value)


def test_every_setting_has_its_words() -> None:
    assert [option.name for option in COMPOSING] == list(Settings.__dataclass_fields__)
    assert all(len(option.meaning) > 10 for option in COMPOSING)


# --- maps -------------------------------------------------------------------------------------------------------------

SQUARE = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0], [100.0, 100.0], [50.0, 50.0]])


@pytest.mark.parametrize("method", ["nearest", "linear", "rbf"])
def test_a_map_of_one_irradiance_is_even_and_the_north_is_above(method: str) -> None:
    weights = maps.weights(SQUARE, 10, 8, method, "made")
    assert weights.shape == (80, 5)
    assert weights.sum(axis=1) == pytest.approx(1, abs=1e-5)
    north = (weights @ np.array([0, 0, 100, 100, 50.0])).reshape(10, 8)
    assert north[0].mean() > 75 > 25 > north[-1].mean()
    east = (weights @ np.array([0, 100, 0, 100, 50.0])).reshape(10, 8)
    assert east[:, -1].mean() > 75 > 25 > east[:, 0].mean()


def test_linear_maps_are_linear_within_and_nearest_beyond_the_sensors() -> None:
    metres = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0], [20.0, 20.0]])
    plane = metres @ np.array([2.0, 3.0]) + 5
    made = (maps.weights(metres, 50, 50, "linear", "made") @ plane).reshape(50, 50)
    assert made[40, 10] == pytest.approx(2 * 21 + 3 * 19 + 5, abs=1e-3)  # 21 m east, 19 m north
    assert made[0, 49] in plane.astype(np.float32)  # the corner beyond the hull: no extrapolation
    assert made.min() >= plane.min() - 1e-3 and made.max() <= plane.max() + 1e-3


@pytest.mark.parametrize(("metres", "words"), [
    (SQUARE[:3], "3 sensors are too few for a map; it needs at least 4"),
    (np.array([[float(i), 2.0 * i] for i in range(6)]), "the sensors stand on one line"),
    (np.array([[0.0, 0], [1, 1], [2, 0], [np.nan, 1]]), "needs the position of every sensor"),
])  # fmt: skip
def test_maps_that_cannot_be_made(metres: np.ndarray, words: str) -> None:
    with pytest.raises(DataError, match=words):
        maps.weights(metres, 50, 50, "linear", "made")


def test_samples_may_be_maps() -> None:
    parts = compose(counting(60, sensors=6), replace(PLAIN, maps="nearest"), form=(5, 4))
    assert parts.train.x.shape[1:] == (5, 4, 1)
    assert set(np.unique(parts.train.x[7])) <= {7, 107, 207, 307, 407, 507}


# --- questions --------------------------------------------------------------------------------------------------------


def test_several_instants_of_one_sensor_and_several_sensors_at_one_instant() -> None:
    made, fitted = counting(30), scale.Scale()
    now = int(made.times[20])
    two = ask(made, replace(PLAIN, rule=LEFT_OUT), fitted, now, ahead=(1, 2))
    assert two.x.tolist() == [[19, 219], [20, 220]]  # a horizon of 2 s before what is asked for
    assert [(at - now) // SECOND for at in two.predicted] == [1, 2]
    sensors = ask(made, replace(PLAIN, rule=LEFT_OUT, target="a+c"), fitted, now, ahead=(1,))
    assert sensors.x.tolist() == [[119, 219], [19, 119]]
    assert len(ask(made, replace(PLAIN, target="all"), fitted, now)) == 3
    assert np.isnan(two.y).all()  # nobody knows yet
    with pytest.raises(DataError, match="3 s ahead is not within the horizon of 2 s"):
        ask(made, PLAIN, fitted, now, ahead=(3,))
    with pytest.raises(DataError, match=r"made\.csv: has no measurement at"):
        ask(made, PLAIN, fitted, int(made.times[0]), ahead=(1,))


# --- prepared for a network -------------------------------------------------------------------------------------------

SCENE = "solar-synthetic?every=20&days=1"


def prepared(name: str, model: str, folder: Path, samples: int | None = None, seed: int = 1) -> Any:
    found = zoo.find(model)
    return prepare(name, found.network, found.recipe, seed, folder, samples)


@pytest.mark.parametrize("score", ["test", "validation"])
def test_baselines_are_of_the_samples_that_the_network_is_tested_on(tmp_path: Path, score: str) -> None:
    made = prepared(f"{SCENE}&score={score}", "solar/pyramid-50", tmp_path)
    x, y = (np.load(path) for path in (made.x_test, made.y_test))
    facts = made.provenance
    column = int(facts["targets"][0]) - 1
    mse = np.mean(np.square(x[:, column : column + 1].astype(np.float64) - y))
    assert facts["baselines"]["persistence"]["mse"] == pytest.approx(mse)
    assert facts["unit"] == {"name": "W/m²", "size": facts["scale"]["unit"]}
    assert (facts["scored"], facts["spans"][score][2]) == (score, len(y))
    assert (y.shape[1:], y.dtype) == ((1,), np.float32)


def test_fewer_samples_have_baselines_of_their_own(tmp_path: Path) -> None:
    whole = prepared(SCENE, "solar/pyramid-50", tmp_path)
    some = prepared(SCENE, "solar/pyramid-50", tmp_path, samples=50)
    errors = [made.provenance["baselines"]["persistence"]["mse"] for made in (whole, some)]
    x, y = np.load(some.x_test), np.load(some.y_test)
    column = int(some.provenance["targets"][0]) - 1
    assert len(y) == 50
    assert errors[1] == pytest.approx(np.mean(np.square(x[:, [column]].astype(np.float64) - y)))
    assert errors[0] != errors[1]


def test_the_weather_is_of_the_name_and_not_of_the_studys_seed(tmp_path: Path) -> None:
    first, same = (prepared(SCENE, "solar/pyramid-50", tmp_path, seed=seed) for seed in (1, 2))
    assert first.content == same.content
    assert prepared(SCENE + "&seed=2", "solar/pyramid-50", tmp_path).content != first.content


@pytest.mark.parametrize(("options", "model", "shape"), [
    ("", "solar/pyramid-50", (50,)),
    ("&rule=leave-target-out", "solar/pyramid-50", (50,)),  # a sensor more
    ("", "solar/pyramid-50?inputs=9", (9,)),
    ("&features=12", "solar/pyramid-50?inputs=12", (12,)),
    ("", "solar/cnn?size=12", (12, 12, 1)),
])  # fmt: skip
def test_the_synthetic_grid_has_as_many_sensors_as_the_network_takes(
    tmp_path: Path, options: str, model: str, shape: tuple[int, ...]
) -> None:
    made = prepared(SCENE + options, model, tmp_path)
    assert np.load(made.x_train, mmap_mode="r").shape[1:] == shape
    assert made.synthetic


def test_the_models_of_the_study_name_their_dataset() -> None:
    assert find(zoo.find("solar/pyramid-50-25-13").dataset).name == "solar-synthetic"
    assert find(zoo.find("solar/cnn").dataset).synthetic


def test_changed_files_of_the_user_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMETRIAL_OAHU", str(tmp_path / "mine"))
    (tmp_path / "mine").mkdir()
    rng = np.random.default_rng(1)
    rows = [
        f"{i % 60},2010,213,{1200 + i // 60}," + ",".join(map(str, rng.uniform(100, 900, 19).round(1)))
        for i in range(120)
    ]
    (tmp_path / "mine" / "20100801.txt").write_text("\n".join(rows) + "\n")
    name = "oahu?horizon=5&target=DH3"
    first = prepared(name, "solar/pyramid-50?inputs=17", tmp_path / "kept")
    assert first.provenance["targets"] == ["DH3"]
    assert prepared(name, "solar/pyramid-50?inputs=17", tmp_path / "kept") == first
    archive(tmp_path / "mine" / "20100802.txt", rows=60, clock=1300)
    assert prepared(name, "solar/pyramid-50?inputs=17", tmp_path / "kept").content != first.content


def test_a_network_that_does_not_fit_is_told_what_does(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"the samples .* are 12, but network .* takes 50; give the network an input of 12"
    ):
        prepared(SCENE + "&features=12", "solar/pyramid-50", tmp_path)
    with pytest.raises(DataError, match="rows of sensors or maps with one channel, but the network takes 32x32x3"):
        prepared(SCENE, "backends/cnn-relu", tmp_path)


@pytest.mark.slow
def test_a_linear_guess_from_all_sensors_is_better_than_persistence() -> None:
    """Else there would be nothing for a network to find."""
    parts = compose(synthetic.make(Scene()), Settings(every=5))
    with_one = [np.c_[part.x, np.ones(len(part))] for part in (parts.train, parts.test)]
    solution = np.linalg.lstsq(with_one[0], parts.train.y, rcond=None)[0]
    error = np.mean(np.square(with_one[1] @ solution - parts.test.y))
    assert error < 0.8 * np.mean(np.square(parts.test.guesses["persistence"] - parts.test.y))


def test_melpitz_is_composed_as_described() -> None:
    made = melpitz.read(real())
    parts = compose(made, Settings())
    assert [len(part) for part in all_parts(parts)] == [2504, 349, 718]
    assert parts.targets == ("28",)
    rms = {
        name: np.sqrt(np.mean(np.square(g - parts.test.y))) * parts.scale.unit for name, g in parts.test.guesses.items()
    }
    assert rms["persistence"] == pytest.approx(65.6, abs=0.1)
    assert rms["smart persistence"] == pytest.approx(rms["persistence"], rel=0.01)  # ten seconds of sun are little
    assert compose(made, Settings(), (50, 50)).test.x.shape == (718, 50, 50, 1)
