"""Predicted times: rough before anything is known, and better with each run."""

from __future__ import annotations

from tests.unit import made_records as made
from tests.unit.test_study import study, trials
from timetrial.records.record import Record
from timetrial.runner.forecast import START_SECONDS, Forecast, work
from timetrial.spec.trial import Trial


def ran(trial: Trial, wall: float, steady: float, step: float, **changes: object) -> Record:
    phases = {"import": 1.0, "build": 1.0, "steady": steady, **changes}
    return made.record(trial.engine, 0, step, phases=phases, wall_seconds=wall, trial=trial.id)


def test_before_anything_is_known_a_larger_network_takes_longer() -> None:
    small, large = trials(vary={"recipe.batch": [1, 65536]})
    forecast = Forecast(study())
    assert START_SECONDS < forecast.seconds(small) < forecast.seconds(large)


def test_a_cell_that_was_run_takes_what_it_took() -> None:
    (trial,) = trials()
    forecast = Forecast(study())
    for wall in (20.0, 22.0, 30.0):
        forecast.learn(trial, ran(trial, wall, 10.0, 0.001))
    assert forecast.seconds(trial) == 22.0


def test_training_to_the_end_once_a_cell_is_not_expected_of_every_run() -> None:
    (trial,) = trials()
    forecast = Forecast(study())
    forecast.learn(trial, ran(trial, 60.0, 10.0, 0.001, train=38.0, evaluate=1.0, save=1.0))
    assert forecast.seconds(trial) == 20.0


def test_another_cell_of_the_engine_starts_as_this_one_and_steps_by_its_size() -> None:
    small, large = trials(vary={"recipe.batch": [32, 3200]})
    assert work(large) == 100 * work(small)
    forecast = Forecast(study(profile="quick"))
    forecast.learn(small, ran(small, 31.0, 1.0, 0.01))
    # 30 s of start, 5 s of warm-up (its cap), and ten laps of one step, 100 times as long
    assert abs(forecast.seconds(large) - (30.0 + 5.0 + 10 * 1.0)) < 1e-6


def test_a_failed_run_teaches_nothing() -> None:
    (trial,) = trials()
    forecast = Forecast(study())
    before = forecast.seconds(trial)
    forecast.learn(trial, made.crash())
    assert forecast.seconds(trial) == before
