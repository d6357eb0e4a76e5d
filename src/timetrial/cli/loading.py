"""From a name or a path to a study and its trials."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timetrial.cli.shared import BadRequest, Failed

if TYPE_CHECKING:
    from timetrial.spec.study import Resolved, Study
    from timetrial.spec.trial import Trial


_OPTIONS = {"engines": "engine", "models": "model"}  # of the command line, by the keys that they change


def built_in_studies() -> list[str]:
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in resources.files("timetrial.studies").iterdir()
        if entry.name.endswith(".yaml")
    )


def open_study(name: str) -> Study:
    """A path to a YAML file, or the name of a study that comes with timetrial."""
    from timetrial.spec.study import load_study

    if name in built_in_studies():
        with resources.as_file(resources.files("timetrial.studies") / f"{name}.yaml") as path:
            return load_study(path)
    path = Path(name)
    if not os.path.exists(path) and path.suffix not in (".yaml", ".yml"):
        raise BadRequest(f"there is no study '{name}': give a .yaml file or one of {', '.join(built_in_studies())}")
    return load_study(path)


def asked_for(name: str, **changes: Any) -> tuple[Study, list[Trial]]:
    """A study with what the command line changes of it, and its trials. What is wrong is told with the file's name."""
    study = changed(open_study(name), **changes)
    if name in built_in_studies():
        return study, trials_of(study)
    options = [f"--{_OPTIONS.get(key, key)}" for key, value in changes.items() if value]
    place = f"{name} with {', '.join(options)}" if options else name
    try:
        return study, trials_of(study)
    except (ValueError, BadRequest) as error:
        raise BadRequest("\n".join(f"{place}: {line}" for line in str(error).splitlines())) from error


class ZooResolver:
    """Models by the names of the zoo."""

    def resolve(self, name: str, options: Mapping[str, Any]) -> Resolved:
        from timetrial import zoo
        from timetrial.spec.study import Resolved

        model = zoo.find(name, **options)
        return Resolved(model.network, model.recipe, model.examples, model.dataset, model.preprocessing)


def trials_of(study: Study) -> list[Trial]:
    from timetrial.data.registry import find as find_dataset
    from timetrial.engines.registry import parse
    from timetrial.spec.study import DEFAULT, expand

    for engine in study.engines:
        parse(engine)
    if study.data != DEFAULT:  # one name for one dataset, so that its trials are the same
        study = study.model_copy(update={"data": find_dataset(study.data).name})
    trials = expand(study, ZooResolver())
    if study.preprocessing:
        check_steps(trials)
    return trials


def engines_asked(engines: Sequence[str] | None) -> list[str]:
    """Names, several with commas between; without any, or with `all`, those that are installed."""
    from timetrial.engines.locate import installed

    if engines and list(engines) != ["all"]:
        return [name for given in engines for name in given.split(",") if name]
    found = [located.name for located in installed() if located.interpreter and located.engine.ranked]
    if not found:
        raise Failed("no engine is installed; `timetrial engines add torch tensorflow jax` installs those of today")
    return found


def check_steps(trials: Sequence[Trial]) -> None:
    """Unknown steps, and samples that would not fit their network, are said before anything is loaded or run."""
    from timetrial.data.registry import find
    from timetrial.data.steps.chosen import chain_for

    for trial in trials:
        try:
            chain_for(find(trial.dataset), trial.network, trial.preprocessing)
        except ValueError as error:
            raise BadRequest(f"preprocessing of '{trial.model}': {error}") from None


def data_ready(trials: Sequence[Trial]) -> None:
    """Before anything runs: is each dataset here, or what brings it?"""
    from timetrial.data.errors import DataError
    from timetrial.data.registry import UnknownDataset, absent, find, is_here

    for name in dict.fromkeys(trial.dataset for trial in trials):
        try:
            dataset = find(name)
        except UnknownDataset as error:
            raise DataError(f"{error}, or use 'synthetic', which fits any network") from None
        if not is_here(dataset):
            raise DataError(absent(dataset))


def changed(study: Study, **changes: Any) -> Study:
    """The study with some of its keys replaced from the command line; None leaves a key as it is."""
    from timetrial.spec.study import parse_study

    given = {key: value for key, value in changes.items() if value}
    if not given:
        return study
    content = {key: getattr(study, key) for key in study.model_fields_set} | given
    if "models" in given:  # these may be of the zoo or written out in the study
        own = {network.name: network for network in study.networks if network.name in given["models"]}
        content |= {"networks": list(own.values()), "models": [name for name in given["models"] if name not in own]}
    return parse_study({key: value for key, value in content.items() if value != []}, "command line")


def place_of(name: str, records: Path) -> Path:
    """The name of a study goes before a file of that name, unless it is written as a path."""
    if os.sep not in name and (records / name).is_dir():
        return records / name
    if os.path.exists(name):
        return Path(name)
    from timetrial.records.store import Store

    have = ", ".join(Store(records).studies()) or "none yet"
    raise BadRequest(f"{name}: there is no such file or folder, and no study of that name in {records} ({have})")


def chosen_by(text: str, wanted: str) -> dict[str, str]:
    """What follows the `?` in `widths?engine=torch&task=train`."""
    found = {}
    for part in wanted.split("&") if wanted else ():
        name, equals, value = part.partition("=")
        if not equals:
            raise BadRequest(f"{text}: '{part}' chooses nothing; write it as name=value, several with & between")
        found[name] = value
    return found
