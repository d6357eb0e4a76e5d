"""The environment of several frameworks in an old Python: found, made, mended, and what one of its engines lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests import engines
from tests.unit.test_engines import FAKE, change_marker, plan, quiet
from timetrial.cli.main import app
from timetrial.engines import checks, doctor, environments, libraries, locate, pins, pythons, trying
from timetrial.engines.environments import EnvironmentFailed
from timetrial.engines.interpreters import NoPython, Range
from timetrial.engines.registry import ENGINES, FAMILIES, LINKS, UnknownEngine, parse
from timetrial.engines.remedies import diagnose, treat
from timetrial.engines.target import target

OLD = Range((3, 6), (3, 6))
NO_COMPILER = "raise RuntimeError('Theano finds no C++ compiler and would compute in slow Python')"
# What CNTK's import says where a library is missing; the fake looks where the real loader would.
NO_MPI = """
if os.environ.get('KERAS_BACKEND') == 'cntk':
    for place in os.environ['LD_LIBRARY_PATH'].split(':'):
        if os.path.exists(os.path.join(place, 'libmpi.so.12')):
            break
    else:
        raise ImportError('libmpi.so.12: cannot open shared object file: No such file or directory')
"""
ONLY_THEANO_LACKS = f"\nif 'THEANO_FLAGS' in os.environ:\n    {NO_COMPILER}"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIMETRIAL_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "engines"


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for CPython 3.6."""
    monkeypatch.setenv("FAKE_VERSION", "[3, 6, 15]")
    return fake(tmp_path / "fake-python")


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for all the places where the system has its libraries."""
    folder = tmp_path / "system"
    folder.mkdir()
    monkeypatch.setattr(libraries, "_USUAL", (str(folder),))
    monkeypatch.setattr(libraries, "_OPEN_MPI", "/nowhere")
    monkeypatch.setattr(libraries, "_cached", lambda name: None)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    return folder


def fake(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{FAKE}", encoding="utf-8")
    path.chmod(0o755)
    return path


def install_mpi(system: Path) -> None:
    for name in ("libmpi.so.40", "libmpi_cxx.so.40"):
        (system / name).write_text("a library")


# --- names and versions -----------------------------------------------------------------------------------------------


def test_the_engines_of_the_family() -> None:
    assert pins.serves("originals") == engines.ORIGINALS
    assert target("originals").plan == target("theano").plan == plan("keras2-cntk")
    assert target("originals").asked is None and target("theano").asked == parse("theano")
    assert {ENGINES[name].adapter for name in engines.ORIGINALS} == set(engines.ORIGINALS)
    assert all(ENGINES[name].loops == ("step", "fit") for name in engines.ORIGINALS if name.startswith("keras2"))


def test_its_pins_carry_hashes_and_pip_comes_first() -> None:
    made = plan("theano")
    assert all(" --hash=sha256:" in line for line in (*made.tools, *made.requirements))
    assert made.tools[0].startswith("pip==21.")
    found = pins.shipped(FAMILIES["originals"])
    wanted = {"theano": "1.0.5", "tensorflow": "1.15.5", "keras": "2.3.1", "cntk": "2.7", "h5py": "2.10.0"}
    assert found.items() >= wanted.items()
    assert plan("torch").tools == () and not any("--hash" in line for line in plan("torch").requirements)


def test_scikit_learn_is_a_family_of_its_own() -> None:
    assert pins.serves("sklearn") == ("sklearn",) and plan("sklearn").python == Range((3, 11))
    assert ENGINES["sklearn"].loops == ("step",)
    assert pins.serves("sklearn@1.5.0") == ("sklearn@1.5.0",)


def test_a_version_brings_what_its_engines_need_and_no_other_framework() -> None:
    keras, numpy, h5py = (pins.shipped(FAMILIES["originals"])[name] for name in ("keras", "numpy", "h5py"))
    theano = plan("theano@0.9.0")
    assert theano.folder == "originals@theano-0.9.0" and theano.tools == plan("theano").tools
    assert theano.requirements == ("theano==0.9.0", f"keras=={keras}", f"numpy<={numpy}", f"h5py<={h5py}")
    assert pins.serves(theano.folder) == ("theano@0.9.0", "keras2-theano@theano-0.9.0")
    assert plan("keras2-theano@2.0.8").requirements[:4] == (
        "theano==1.0.5", "tensorflow==1.15.5", "keras==2.0.8", "cntk==2.7",
    )  # fmt: skip
    assert pins.serves("originals@keras-2.0.8") == (
        "keras2-theano@2.0.8", "keras2-tensorflow@2.0.8", "keras2-cntk@2.0.8",
    )  # fmt: skip
    assert pins.serves("originals@1.0.5") == ()


def test_the_version_of_a_backend_may_be_named() -> None:
    asked = parse("keras2-cntk@cntk-2.5.1")
    assert (asked.version, asked.package, asked.name) == ("2.5.1", "cntk", "keras2-cntk@cntk-2.5.1")
    assert plan(asked.name).requirements[:2] == ("keras==2.3.1", "cntk==2.5.1")
    assert pins.serves(plan(asked.name).folder) == (asked.name,)
    assert parse("keras2-cntk@keras-2.3.1").name == "keras2-cntk@2.3.1"
    assert plan("keras2-cntk@cntk-2.7") == plan("theano")


@pytest.mark.parametrize("name", ["keras2-cntk@theano-1.0.0", "torch@torch-2.9.1", "keras-torch@torch-2.9.1"])
def test_another_packages_version_is_refused(name: str) -> None:
    with pytest.raises(UnknownEngine, match="is no version"):
        parse(name)


def test_a_major_version_of_another_engine_is_refused() -> None:
    with pytest.raises(UnknownEngine, match=r"tensorflow1 is tensorflow 1; '2\.5\.0'"):
        parse("tensorflow1@2.5.0")
    with pytest.raises(UnknownEngine, match="keras2-theano is keras 2"):
        parse("keras2-theano@3.0.0")


def test_a_familys_name_with_a_version_and_a_misspelt_one() -> None:
    with pytest.raises(UnknownEngine, match=r"a version of what.*theano, tensorflow1.*with it"):
        target("originals@1.0")
    with pytest.raises(UnknownEngine, match="did you mean 'originals'"):
        target("orginals")


# --- finding CPython 3.6 ----------------------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on it."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    for name in ("PYENV_ROOT", "UV_PYTHON_INSTALL_DIR", "CONDA_EXE", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pythons, "_SYSTEM", (str(tmp_path / "system/bin"), str(tmp_path / "opt/python*/bin")))
    monkeypatch.setattr(pythons, "_ROOTS", ())
    monkeypatch.setenv("FAKE_VERSION", "[3, 6, 9]")
    return tmp_path


@pytest.mark.parametrize(
    "place",
    [
        "user/.pyenv/versions/3.6.9/bin/python",
        "user/.local/share/uv/python/cpython-3.6.9-linux-x86_64-gnu/bin/python3.6",
        "user/miniconda3/bin/python3.6",
        "user/miniconda3/envs/old/bin/python3.6",
        "path/python3.6",
        "system/bin/python3.6",
        "opt/python36/bin/python3.6",
    ],
)
def test_a_python_is_found_where_people_have_them(places: Path, place: str) -> None:
    there = fake(places / place)
    assert pythons.search(OLD, "it") == (there, "3.6.9")


def test_an_environment_that_conda_noted_is_found(places: Path) -> None:
    there = fake(places / "data/old/bin/python3.6")
    (places / "user/.conda").mkdir(parents=True)
    (places / "user/.conda/environments.txt").write_text(f"{places}/gone\n{places}/data/old\n")
    assert pythons.search(OLD, "it")[0] == there


def test_the_newest_comes_first_and_what_does_not_run_is_passed_over(places: Path) -> None:
    versions = places / "user/.pyenv/versions"
    fake(versions / "3.6.9/bin/python")
    newest = fake(versions / "3.6.15/bin/python")
    assert pythons.search(OLD, "it")[0] == newest
    newest.write_text("#!/bin/false\n")
    assert pythons.search(OLD, "it")[0] == versions / "3.6.9/bin/python"


def test_no_python_says_where_was_looked_and_how_to_get_one(
    places: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoPython) as refused:
        environments.add("originals", quiet)
    told = str(refused.value)
    for word in (f"{places}/user/.pyenv/versions", "uv (", "conda (", "on PATH", f"{places}/system/bin"):
        assert word in told
    assert "the originals environment needs CPython 3.6" in told and "--python" in told
    assert "pyenv install 3.6.15" in told and "conda create" in told and "uv has none" in told
    assert not (data / "originals").exists()

    there = fake(places / "path/python3.6")
    monkeypatch.setenv("FAKE_VERSION", "[3, 7, 1]")
    with pytest.raises(NoPython, match=f"{there} is there, but unfit"):
        environments.add("theano", quiet)


@pytest.mark.parametrize(
    ("version", "kind", "told"),
    [
        ("[3, 7, 16]", "CPython", r"is Python 3\.7\.16, but the originals environment needs CPython 3\.6"),
        ("[2, 7, 18]", "CPython", r"is Python 2\.7\.18, but"),
        ("[3, 6, 9]", "PyPy", r"is PyPy 3\.6\.9, but"),
    ],
)
def test_another_python_is_refused(
    data: Path, python: Path, monkeypatch: pytest.MonkeyPatch, version: str, kind: str, told: str
) -> None:
    monkeypatch.setenv("FAKE_VERSION", version)
    monkeypatch.setenv("FAKE_KIND", kind)
    with pytest.raises(NoPython, match=told):
        environments.add("originals", quiet, python=python)
    assert not (data / "originals").exists()


def test_a_good_environment_needs_no_python_to_be_found(data: Path, python: Path, system: Path, places: Path) -> None:
    environments.add("originals", quiet, python=python)
    assert environments.add("theano", quiet).folder == data / "originals"


# --- making -----------------------------------------------------------------------------------------------------------


def test_another_kind_of_machine_is_told(data: Path, python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments.platform, "machine", lambda: "aarch64")
    with pytest.raises(EnvironmentFailed, match=r"for Linux x86_64 alone, and this is Linux aarch64"):
        environments.add("theano", quiet, python=python)
    assert "aarch64" in str(environments.lacking("originals", python)) and not (data / "originals").exists()


def test_all_engines_are_tried_and_found(data: Path, python: Path, system: Path) -> None:
    install_mpi(system)
    said: list[str] = []
    made = environments.add("originals", said.append, python=python)
    assert made.serves == engines.ORIGINALS and made.broken == {}
    log = (data / "originals" / "install.log").read_text()
    assert log.count("--require-hashes") == 2 and log.index("tools.txt") < log.index("requirements.txt")
    assert [line.split()[2] for line in said if "trying" in line] == list(engines.ORIGINALS)
    for name in engines.ORIGINALS:
        found = locate.locate(name)
        assert (found.kind, found.problem, found.folder) == ("environment", None, data / "originals")
    assert locate.locate("keras2-cntk").versions == {"keras": "2.3.1", "cntk": "2.7", "numpy": "1.18.5"}
    said.clear()
    environments.add("keras2-theano", said.append, python=python)
    assert said == ["originals: already there"]
    assert environments.remove("originals", quiet) == engines.ORIGINALS and not (data / "originals").exists()


def test_each_engine_gets_its_own_variables(
    data: Path, python: Path, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_mpi(system)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/mine")
    environments.add("originals", quiet, python=python)
    folder = data / "originals"
    theano, cntk = locate.locate("theano").variables, locate.locate("keras2-cntk").variables
    assert theano == {
        "THEANO_FLAGS": f"base_compiledir={folder}/cache/theano", "THEANORC": f"{folder}/cache/theanorc",
    }  # fmt: skip
    assert cntk["LD_LIBRARY_PATH"] == f"{folder}/lib/timetrial:/mine" and cntk["KERAS_BACKEND"] == "cntk"
    assert cntk["OMPI_ALLOW_RUN_AS_ROOT"] == cntk["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"
    assert cntk["KERAS_HOME"] == f"{folder}/cache/.keras" and cntk["HOME"] == f"{folder}/cache"
    for name in engines.ORIGINALS[:-1]:
        assert not {"LD_LIBRARY_PATH", "OMPI_ALLOW_RUN_AS_ROOT"} & set(locate.locate(name).variables)
    assert locate.locate("tensorflow1").variables == {}
    assert "THEANO_FLAGS" in locate.locate("keras2-theano").variables
    assert (folder / "cache").is_dir()


def test_the_links_lead_to_the_systems_libraries(data: Path, python: Path, system: Path) -> None:
    install_mpi(system)
    environments.add("keras2-cntk", quiet, python=python)
    links = data / "originals" / LINKS
    assert {path.name: os.readlink(path) for path in links.iterdir()} == {
        "libmpi.so.12": str(system / "libmpi.so.40"),
        "libmpi_cxx.so.1": str(system / "libmpi_cxx.so.40"),
    }


def test_without_open_mpi_the_other_engines_work(
    data: Path, python: Path, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CRASH", NO_MPI)
    made = environments.add("originals", quiet, python=python)
    assert made.serves == engines.ORIGINALS[:-1] and list(made.broken) == ["keras2-cntk"]
    found = locate.locate("keras2-cntk")
    assert (found.kind, found.broken, found.interpreter) == ("missing", True, None)
    assert "libmpi.so.12" in str(found.problem)
    remedy = "install Open MPI 3 or 4 (Debian: apt-get install libopenmpi3), then timetrial engines add keras2-cntk"
    assert found.remedy == doctor.check(found).remedy == remedy
    assert locate.locate("theano").kind == "environment"
    with pytest.raises(EnvironmentFailed, match=r"libmpi\.so\.12.*libopenmpi3.*serves theano, tensorflow1"):
        environments.add("keras2-cntk", quiet, python=python)

    install_mpi(system)
    said: list[str] = []
    mended = environments.add("keras2-cntk", said.append, python=python)
    assert mended.serves == engines.ORIGINALS and mended.broken == {}
    assert said == ["originals: already there", "originals: trying keras2-cntk with a small training step"]
    assert locate.locate("keras2-cntk").kind == "environment"


def test_a_lost_link_is_seen_and_mended(
    data: Path, python: Path, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CRASH", NO_MPI)
    install_mpi(system)
    environments.add("originals", quiet, python=python)
    link = data / "originals" / LINKS / "libmpi.so.12"
    link.unlink()
    health = doctor.check(locate.locate("keras2-cntk"))
    assert not health.ok and str(health.remedy).endswith("then timetrial engines add keras2-cntk")
    environments.add("keras2-cntk", quiet, python=python)
    assert link.exists() and doctor.check(locate.locate("keras2-cntk")).ok


def test_without_a_compiler_theano_is_refused_and_never_slow(
    data: Path, python: Path, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CRASH", ONLY_THEANO_LACKS)
    made = environments.add("tensorflow1", quiet, python=python)
    assert set(made.broken) == {"theano", "keras2-theano"}
    found = locate.locate("theano")
    assert found.kind == "missing" and "no C++ compiler" in str(found.problem)
    assert found.remedy == "install g++ (Debian: apt-get install g++), then timetrial engines add theano"
    for name in ("theano", "theano@1.0.5"):
        with pytest.raises(EnvironmentFailed, match="install g"):
            environments.add(name, quiet, python=python)
    assert doctor.check(locate.locate("tensorflow1")).ok

    monkeypatch.delenv("FAKE_CRASH")
    assert environments.add("theano", quiet, python=python).broken == {}
    monkeypatch.setenv("FAKE_CRASH", ONLY_THEANO_LACKS)  # it was there, and is gone again
    health = doctor.check(locate.locate("theano"))
    assert not health.ok and str(health.remedy).startswith("install g++")


def test_what_no_engine_works_in_is_no_environment(
    data: Path, python: Path, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CRASH", "import signal; os.kill(os.getpid(), signal.SIGILL)")
    with pytest.raises(EnvironmentFailed, match="was ended by SIGILL"):
        environments.add("originals", quiet, python=python)
    left = sorted(path.name for path in (data / "originals").iterdir())
    assert left == ["install.log", "requirements.txt", "tools.txt"]
    assert "half made" in str(locate.locate("theano").problem)


def test_a_version_lives_beside_and_tries_its_own_engines(data: Path, python: Path, system: Path) -> None:
    said: list[str] = []
    made = environments.add("theano@0.9.0", said.append, python=python)
    assert made.serves == ("theano@0.9.0", "keras2-theano@theano-0.9.0")
    assert [line.split()[2] for line in said if "trying" in line] == list(made.serves)
    assert locate.locate("theano@0.9.0").version == "0.9.0" and locate.locate("theano").kind == "missing"
    backend = locate.locate("keras2-theano@theano-0.9.0")
    assert (backend.name, backend.version, backend.kind) == ("keras2-theano@theano-0.9.0", "2.3.1", "environment")
    assert locate.locate("keras2-theano@theano-0.8.2").kind == "missing"
    assert [found.name for found in locate.installed()][-2:] == list(made.serves)


def test_a_version_that_does_not_suit_another_engine_is_no_fault(
    data: Path, python: Path, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CRASH", "\nif 'KERAS_BACKEND' in os.environ:\n    raise AttributeError('get_graph')")
    made = environments.add("tensorflow1@1.12.0", quiet, python=python)
    assert made.serves == ("tensorflow1@1.12.0",)
    ((problem, remedy),) = made.broken.values()
    assert "AttributeError: get_graph" in problem and "another version" in remedy
    assert [found.name for found in locate.installed() if "@" in found.name] == ["tensorflow1@1.12.0"]
    assert "get_graph" in str(locate.locate("keras2-tensorflow@tensorflow-1.12.0").problem)


def test_moved_lost_and_older(data: Path, python: Path, system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environments.add("originals", quiet, python=python)
    change_marker(data / "originals", requirements_sha256="0" * 64)
    found = locate.locate("tensorflow1")
    assert found.interpreter and "older pins" in str(found.problem)
    assert found.remedy == "timetrial engines add tensorflow1 --again"
    other = data.parent.parent / "other"
    data.parent.rename(other)
    monkeypatch.setenv("TIMETRIAL_HOME", str(other))
    for name in engines.ORIGINALS:
        found = locate.locate(name)
        assert found.kind == "missing" and f"made in {data / 'originals'}" in str(found.problem)
        assert found.remedy == f"timetrial engines add {name}"
    environments.add("originals", quiet, python=python)
    assert locate.locate("theano").kind == "environment"
    (other / "engines" / "originals" / "bin" / "python").unlink()
    assert "has lost the Python" in str(locate.locate("theano").problem)


def test_an_older_marker_without_a_word_of_what_is_broken(data: Path, python: Path) -> None:
    environments.add("sklearn", quiet, python=fake_of_today(python))
    path = data / "sklearn" / "environment.json"
    written = json.loads(path.read_text())
    assert written.pop("broken") == {}
    path.write_text(json.dumps(written))
    assert locate.locate("sklearn").kind == "environment"


def fake_of_today(python: Path) -> Path:
    os.environ["FAKE_VERSION"] = "[3, 11, 7]"  # the fixture's monkeypatch puts it back
    return python


def test_the_packages_beside_are_of_another_major_version(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "_importable", lambda name: True)
    assert {locate.locate(name).kind for name in engines.ORIGINALS} == {"missing"}
    assert locate.locate("sklearn").kind == "beside"


# --- the command ------------------------------------------------------------------------------------------------------


def command(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["engines", *words])
    return done.exit_code, done.stdout, done.stderr


def test_the_command_tells_what_is_broken_and_goes_on(
    data: Path, python: Path, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CRASH", NO_MPI)
    code, out, err = command("add", "originals", "--python", str(python))
    assert code == 0 and out.startswith("originals: theano, tensorflow1, keras2-theano, keras2-tensorflow in ")
    assert "keras2-cntk: a small training step failed" in err and "apt-get install libopenmpi3" in err
    code, out, err = command("add", "keras2-cntk", "--python", str(python))
    assert code == 1 and "libopenmpi3" in err and not out


def test_the_list_says_what_is_wrong_with_an_environment_that_is_there(
    data: Path, python: Path, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CRASH", NO_MPI)
    environments.add("originals", quiet, python=python)
    monkeypatch.setattr("timetrial.cli.engines.console", partial(Console, width=400))
    rows = {line.split()[0]: line for line in command("list")[1].splitlines()}
    assert "libmpi.so.12" in rows["keras2-cntk"] and "→ install Open MPI 3 or 4" in rows["keras2-cntk"]
    assert (
        rows["tensorflow"].rstrip().endswith("│ timetrial engines add tensorflow")
    )  # nothing is there: the remedy alone
    other = data.parent.parent / "other"
    data.parent.rename(other)
    monkeypatch.setenv("TIMETRIAL_HOME", str(other))
    rows = {line.split()[0]: line for line in command("list")[1].splitlines()}
    assert f"made in {data / 'originals'}" in rows["theano"] and "→ timetrial engines add theano" in rows["theano"]


def test_if_possible_skips_visibly(places: Path, data: Path, system: Path) -> None:
    code, out, err = command("add", "--if-possible", "originals")
    assert code == 0 and not out and "originals: SKIPPED; there is no C++ compiler (g++" in err
    fake(places / "path/g++")
    code, out, err = command("add", "--if-possible", "originals")
    assert code == 0 and "SKIPPED; the originals environment needs CPython 3.6" in err
    fake(places / "path/python3.6")
    code, out, err = command("add", "--if-possible", "originals")
    assert code == 0 and "originals: theano" in out
    (places / "path/g++").unlink()
    assert "SKIPPED" not in command("add", "--if-possible", "originals")[2]


# --- remedies ---------------------------------------------------------------------------------------------------------


def test_the_versions_nearest_to_the_asked_one_are_told() -> None:
    offered = ", ".join(f"{major}.{minor}" for major in (0, 1, 2) for minor in range(20))
    found = diagnose(f"satisfies the requirement tensorflow==1.99 (from versions: {offered})", 100)
    assert "there are 1.19, 1.18, 1.17" in found.cause and "2." not in found.cause and "48 others" in found.cause


@pytest.mark.parametrize("versions", ["", "none"])
@pytest.mark.parametrize("origin", ["", " (from -r /tmp/a b/requirements.txt (line 1))", " (from timetrial)"])
def test_no_version_is_understood_as_every_pip_writes_it(origin: str, versions: str) -> None:
    line = f"  Could not find a version that satisfies the requirement theano==9{origin} (from versions: {versions})\n"
    assert diagnose(f"Collecting x (from y)\n{line}No matching distribution", 100).cause == (
        "pip finds no theano==9 for this Python and machine"
    )


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("ImportError: libmpi_cxx.so.1: cannot open shared object file: No such file", "libopenmpi3"),
        ("ImportError: libgomp.so.1: cannot open shared object file: No such file", "brings libgomp.so.1"),
        ("fatal error: Python.h: No such file or directory", "headers of the Python"),
        ("something new", None),
    ],
)
def test_what_a_failed_check_lacked(output: str, told: str | None) -> None:
    found = treat(output, "theano")
    assert found is None if told is None else (found and told in found and found.endswith("engines add theano"))


# --- for real ---------------------------------------------------------------------------------------------------------


@pytest.mark.engines
@pytest.mark.timeout(900)
def test_all_five_do_a_real_step() -> None:
    for name in engines.ORIGINALS:
        health = doctor.check(engines.find(name))
        assert health.ok, f"{health.problem}; {health.remedy}\n{health.last_lines}"
        assert str(health.python).startswith("3.6.") and health.versions["numpy"].startswith("1.")


@pytest.mark.engines
@pytest.mark.timeout(300)
def test_theano_without_a_compiler_is_refused_for_real(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = engines.find("theano")
    monkeypatch.setenv("PATH", str(tmp_path))
    health = doctor.check(found)
    assert not health.ok and "no C++ compiler" in str(health.problem) and "install g++" in str(health.remedy)


@pytest.mark.engines
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["theano", "keras2-theano"])
def test_an_adapter_without_a_compiler_refuses_to_start(tmp_path: Path, name: str) -> None:
    """The check of an environment was long ago; a run must see for itself that the compiler is gone."""
    from timetrial.runner.surroundings import surroundings
    from timetrial.spec.placement import Placement
    from timetrial.spec.trial import Settings

    found = engines.find(name)
    settings = {"device": "cpu", "threads": 1, "seed": 1, "precision": "float32"}
    code = f"from timetrial_worker import adapters; adapters.load({name!r}, {settings!r}).start(); print('started')"
    variables = {
        **surroundings(Placement(), Settings(), found.variables),
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"), "PATH": str(tmp_path),
    }  # fmt: skip
    done = subprocess.run([str(found.interpreter), "-c", code], env=variables, capture_output=True, text=True)
    assert done.returncode != 0 and "started" not in done.stdout
    assert done.stderr.rstrip().endswith("no C++ compiler and would run in Python; install g++")


@pytest.mark.engines
@pytest.mark.timeout(300)
def test_two_processes_compile_into_one_empty_directory_at_once(tmp_path: Path) -> None:
    """The same operations, wanted by both at the same time. Each may compile some; what is left serves a third."""
    from timetrial.runner.surroundings import surroundings
    from timetrial.spec.placement import Placement
    from timetrial.spec.trial import Settings

    found = engines.find("theano")
    flags = f"base_compiledir={tmp_path / 'compiled'},gcc.cxxflags=-O0"
    variables = {**surroundings(Placement(), Settings(), found.variables), "THEANO_FLAGS": flags}
    command = [str(found.interpreter), "-c", checks.script(found.engine.check)]

    def compiled(processes: int) -> set[Path]:
        started = [
            subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        for process in started:
            out, err = process.communicate(timeout=240)
            answer = checks.read(out)
            assert process.returncode == 0 and answer and answer.right, err
        return {path.parent for path in (tmp_path / "compiled").glob("*/tmp*/mod.cpp")}

    together = compiled(2)
    assert together and compiled(1) <= together
    assert not list((tmp_path / "compiled").glob("*/lock_dir"))


@pytest.mark.engines
def test_nothing_of_the_parent_or_the_user_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As a run starts it: not isolated, but with the variables of a run."""
    from timetrial.runner.surroundings import surroundings
    from timetrial.spec.placement import Placement
    from timetrial.spec.trial import Settings

    found = engines.find("keras2-theano")
    site = tmp_path / ".local/lib/python3.6/site-packages"
    site.mkdir(parents=True)
    (site / "intruder.py").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(site))
    variables = surroundings(Placement(), Settings(), found.variables)
    code = "import sys, site; print(site.ENABLE_USER_SITE, [p for p in sys.path if 'intruder' in p or '.local/lib' in p]); import intruder"
    done = subprocess.run([str(found.interpreter), "-c", code], env=variables, capture_output=True, text=True)
    assert done.stdout.startswith("False ") and "ModuleNotFoundError" in done.stderr
    assert trying.attempt(found.engine, Path(str(found.interpreter)), found.folder, 120).answer
    assert not (tmp_path / ".keras").exists() and not (tmp_path / ".theano").exists()
