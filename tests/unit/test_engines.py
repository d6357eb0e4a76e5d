"""Engines: names, pins, environments (made with a stand-in for Python and pip, no network), finding and checking."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from timetrial.cli.loading import engines_asked
from timetrial.disk.home import home
from timetrial.engines import checks, doctor, environments, locate, marker, pins
from timetrial.engines.environments import EnvironmentFailed
from timetrial.engines.interpreters import NoPython
from timetrial.engines.registry import ENGINES, FAMILIES, UnknownEngine, parse, same_version
from timetrial.engines.remedies import diagnose

# Stands for an interpreter: makes "virtual environments" that are copies of itself, "installs" by keeping what it was
# asked for, and answers a check with it. Variables named FAKE_… make it fail in the ways of the real ones.
FAKE = """
import json, os, sys, shutil, time
words = [word for word in sys.argv[1:] if word != "-I"]
here = os.path.dirname(os.path.abspath(__file__))
if words[:2] == ["-m", "venv"]:
    if os.environ.get("FAKE_VENV"):
        sys.exit(os.environ["FAKE_VENV"])
    os.makedirs(os.path.join(words[2], "bin"))
    shutil.copy(__file__, os.path.join(words[2], "bin", "python"))
elif words[:3] == ["-m", "pip", "install"]:
    with open(words[words.index("-r") + 1]) as asked:
        lines = [line.split()[0] for line in asked]
    for line in lines:
        print("Collecting " + line + " (from -r somewhere)")
    with open(os.environ.get("FAKE_COUNT", os.devnull), "a") as count:
        count.write("begin\\n")
    time.sleep(float(os.environ.get("FAKE_SLEEP", "0")))
    with open(os.environ.get("FAKE_COUNT", os.devnull), "a") as count:
        count.write("end\\n")
    if os.environ.get("FAKE_PIP"):
        print(os.environ["FAKE_PIP"])
        sys.exit(1)
    with open(os.path.join(here, "installed.json"), "w") as stream:
        json.dump({line.replace("<=", "==").split("==")[0]: line.replace("<=", "==").split("==")[1] for line in lines}, stream)
elif words[0] == "-c" and "python_implementation" in words[1]:
    version = json.loads(os.environ.get("FAKE_VERSION", "[3, 11, 7]"))
    print(json.dumps([os.environ.get("FAKE_KIND", "CPython")] + version))
elif words[0] == "-c":
    exec(os.environ.get("FAKE_CRASH", ""))
    with open(os.path.join(here, "installed.json")) as stream:
        versions = json.load(stream)
    python = ".".join(map(str, json.loads(os.environ.get("FAKE_VERSION", "[3, 11, 7]"))))
    gradient = json.loads(os.environ.get("FAKE_GRADIENT", "[[20, 28], [28, 40]]"))
    print("a framework's noise")
    print("TIMETRIAL-CHECK " + json.dumps({"gradient": gradient, "versions": versions, "python": python}))
"""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIMETRIAL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(locate, "_importable", lambda name: False)
    return tmp_path / "home" / "engines"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    path = tmp_path / "fake-python"
    path.write_text(f"#!{sys.executable}\n{FAKE}", encoding="utf-8")
    path.chmod(0o755)
    return path


def quiet(line: str) -> None:
    """Takes progress and says nothing."""


# --- names --------------------------------------------------------------------------------------------------------


def test_parse() -> None:
    assert parse("torch").engine is ENGINES["torch"] and parse("torch").version is None
    asked = parse("keras-jax@3.12.0")
    assert (asked.engine.name, asked.version, asked.name) == ("keras-jax", "3.12.0", "keras-jax@3.12.0")


@pytest.mark.parametrize("name", ["torch@", "torch@../up", "torch@2 --index", "torch@latest", "torch@2.9.1@1"])
def test_what_is_no_version_is_refused(name: str) -> None:
    with pytest.raises(UnknownEngine, match="is no version"):
        parse(name)


def test_an_unknown_name_comes_with_the_close_one() -> None:
    with pytest.raises(UnknownEngine, match="did you mean 'tensorflow'"):
        parse("tensorlfow")
    with pytest.raises(UnknownEngine, match="known: torch, tensorflow"):
        parse("zzz")


def test_every_engine_is_whole() -> None:
    for engine in ENGINES.values():
        compile(checks.script(engine.check), engine.name, "exec")
        assert engine.needs[0] in engine.distributions
        assert engine.family is None or engine.family in FAMILIES
    assert not ENGINES["reference"].ranked
    assert ENGINES["keras-jax"].backend_env == {"KERAS_BACKEND": "jax"}


def test_same_version() -> None:
    assert same_version("2.13.0", "2.13.0+cpu") and same_version("2.13", "2.13.0")
    assert not same_version("2.13.0+cu130", "2.13.0+cpu") and not same_version("2.1", "2.10")


# --- pins ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_shipped_pins_are_exact_and_hold_what_the_family_needs(family: pins.Family) -> None:
    found = pins.shipped(family)
    assert set(family.packages.values()) <= set(found)
    assert all(version and version[0].isdigit() and "+" not in version for version in found.values())


def plan(name: str) -> pins.Recipe:
    made = pins.recipe(parse(name))
    assert made is not None
    return made


def test_a_version_is_another_environment_with_the_other_pins_loosened() -> None:
    shipped = pins.shipped(FAMILIES["torch"])
    other = plan("torch@2.9.1")
    assert other.folder == "torch@2.9.1" and not other.pinned
    assert other.requirements == ("torch==2.9.1", f"keras<={shipped['keras']}", f"numpy<={shipped['numpy']}")


def test_a_version_of_keras_keeps_the_main_package() -> None:
    torch = pins.shipped(FAMILIES["torch"])["torch"]
    other = plan("keras-torch@3.12.0")
    assert other.folder == "torch@keras-3.12.0"
    assert other.requirements[:2] == (f"torch=={torch}", "keras==3.12.0")


def test_the_shipped_version_is_the_familys_own_environment() -> None:
    torch = pins.shipped(FAMILIES["torch"])["torch"]
    assert plan(f"torch@{torch}") == plan("torch") == plan("keras-torch")
    assert plan("tensorflow@2.20.0").requirements[0] == "tensorflow-cpu==2.20.0"


def test_what_a_folder_serves() -> None:
    assert pins.serves("torch") == ("torch", "keras-torch")
    assert pins.serves("jax@0.9.0") == ("jax@0.9.0",)
    assert pins.serves("jax@keras-3.12.0") == ("keras-jax@3.12.0",)
    assert pins.serves("something") == pins.serves("jax@keras") == ()


# --- the data folder ----------------------------------------------------------------------------------------------


def test_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIMETRIAL_HOME", str(tmp_path / "mine"))
    assert home() == tmp_path / "mine"
    monkeypatch.delenv("TIMETRIAL_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert home() == tmp_path / "timetrial"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert home() == Path.home() / ".local" / "share" / "timetrial"


# --- making -------------------------------------------------------------------------------------------------------


def test_add_makes_an_environment_that_is_then_found(data: Path, python: Path) -> None:
    said: list[str] = []
    made = environments.add("jax", said.append, python=python)
    assert made.folder == data / "jax" and made.serves == ("jax", "keras-jax")
    written = json.loads((data / "jax" / "environment.json").read_text())
    assert written["family"] == "jax" and written["requested"] is None and written["path"] == str(data / "jax")
    assert written["requirements_sha256"] == plan("jax").sha256
    assert written["versions"] == pins.shipped(FAMILIES["jax"])
    assert "Collecting jax==" in (data / "jax" / "install.log").read_text()
    assert any("MB on disk" in line for line in said) and said[-1] == "jax: ready"

    for name in ("jax", "keras-jax"):
        found = locate.locate(name)
        assert (found.kind, found.problem) == ("environment", None)
        assert found.interpreter == data / "jax" / "bin" / "python"
    assert locate.locate("jax").version == pins.shipped(FAMILIES["jax"])["jax"]
    assert set(locate.locate("jax").versions) == {"jax", "jaxlib", "numpy"}
    assert locate.locate("torch").kind == "missing"


def test_a_good_environment_is_kept_unless_asked_again(
    data: Path, python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = tmp_path / "count"
    monkeypatch.setenv("FAKE_COUNT", str(count))
    environments.add("jax", quiet, python=python)
    said: list[str] = []
    environments.add("keras-jax", said.append, python=python)
    assert said == ["jax: already there"] and count.read_text().count("begin") == 1
    environments.add("jax", quiet, python=python, again=True)
    assert count.read_text().count("begin") == 2


def test_a_kept_environment_with_another_python_says_so(
    data: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environments.add("jax", quiet, python=python)
    monkeypatch.setenv("FAKE_VERSION", "[3, 12, 1]")
    said: list[str] = []
    environments.add("jax", said.append, python=python)
    assert any("it has Python 3.11.7, not 3.12.1" in line and "--again" in line for line in said)


def test_a_version_lives_beside_the_familys_own(data: Path, python: Path) -> None:
    environments.add("torch", quiet, python=python)
    environments.add("torch@2.9.1", quiet, python=python)
    assert locate.locate("torch@2.9.1").version == "2.9.1"
    assert locate.locate("torch").version == pins.shipped(FAMILIES["torch"])["torch"]
    assert locate.locate("torch@2.8.0").kind == "missing"
    names = [found.name for found in locate.installed()]
    assert names[: len(ENGINES)] == list(ENGINES) and names[len(ENGINES) :] == ["torch@2.9.1"]


def test_verify_takes_every_version_for_one_of_all_engines(data: Path, python: Path) -> None:
    for name in ("torch", "torch@2.9.1"):
        environments.add(name, quiet, python=python)
    assert engines_asked(["all"]) == engines_asked(None) == ["torch", "keras-torch", "torch@2.9.1"]


def test_tensorflow_is_found_under_the_name_it_is_installed_by(data: Path, python: Path) -> None:
    environments.add("tensorflow", quiet, python=python)
    assert locate.locate("tensorflow").versions["tensorflow"] == pins.shipped(FAMILIES["tensorflow"])["tensorflow-cpu"]


def test_a_failed_environment_is_half_made_and_made_anew(
    data: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_PIP", "ERROR: Could not install packages: [Errno 28] No space left on device")
    with pytest.raises(EnvironmentFailed, match=r"the disk is full; free about \d+ MB") as failed:
        environments.add("jax", quiet, python=python)
    assert "No space left" in failed.value.last_lines
    assert failed.value.log is not None and "No space left" in failed.value.log.read_text()
    assert sorted(path.name for path in (data / "jax").iterdir()) == ["install.log", "requirements.txt"]
    found = locate.locate("jax")
    assert found.kind == "missing" and found.problem and "half made" in found.problem
    assert found.remedy == "timetrial engines add jax"

    monkeypatch.delenv("FAKE_PIP")
    said: list[str] = []
    environments.add("jax", said.append, python=python)
    assert any("half made; it is made anew" in line for line in said)
    assert locate.locate("jax").kind == "environment"


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("FAKE_GRADIENT", "[[1, 2], [3, 4]]", "computed a wrong gradient"),
        ("FAKE_CRASH", "raise ImportError('no libgomp')", "failed with exit code 1: ImportError: no libgomp"),
        ("FAKE_CRASH", "import os, signal; os.kill(os.getpid(), signal.SIGILL)", "was ended by SIGILL"),
        ("FAKE_CRASH", "sys.exit(0)", "ended without an answer"),
    ],
)
def test_packages_that_do_not_work_are_no_environment(
    data: Path, python: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, told: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(EnvironmentFailed) as failed:
        environments.add("jax", quiet, python=python)
    assert told in str(failed.value) and not (data / "jax" / "environment.json").exists()


def test_a_python_without_venv(data: Path, python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_VENV", "The virtual environment was not created because ensurepip is not available.")
    with pytest.raises(EnvironmentFailed, match="python3-venv"):
        environments.add("jax", quiet, python=python)


def test_an_unfit_python_is_refused_before_anything_is_made(
    data: Path, python: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_VERSION", "[3, 10, 4]")
    with pytest.raises(NoPython, match=r"is Python 3\.10\.4, but the jax environment needs Python 3\.11"):
        environments.add("jax", quiet, python=python)
    assert environments.add("torch@2.9.1", quiet, python=python).versions["torch"] == "2.9.1"
    with pytest.raises(NoPython, match="there is no Python"):
        environments.add("jax", quiet, python=tmp_path / "nowhere")
    with pytest.raises(NoPython, match="does not run as a Python"):
        environments.add("jax", quiet, python="/bin/false")
    assert not (data / "jax").exists()


def test_the_reference_needs_no_environment(data: Path) -> None:
    with pytest.raises(EnvironmentFailed, match="has no environment of its own"):
        environments.add("reference", quiet)


def test_a_data_folder_that_cannot_be_made(python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMETRIAL_HOME", str(python))  # a file, not a folder
    with pytest.raises(EnvironmentFailed, match="TIMETRIAL_HOME"):
        environments.add("jax", quiet, python=python)


def test_two_at_once_make_it_once(data: Path, python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = tmp_path / "count"
    monkeypatch.setenv("FAKE_COUNT", str(count))
    monkeypatch.setenv("FAKE_SLEEP", "0.5")
    said: list[str] = []
    made: list[environments.Environment] = []
    both = [
        threading.Thread(target=lambda: made.append(environments.add("jax", said.append, python=python, again=True)))
        for _ in range(2)
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert count.read_text() == "begin\nend\n" and len(made) == 2 and made[0] == made[1]
    assert any("waiting" in line for line in said)


def test_a_killed_parent_leaves_the_lock_with_pip(data: Path, python: Path, tmp_path: Path) -> None:
    """What replaces it must not remove the folder that pip still writes to."""
    count = tmp_path / "count"
    code = f"from timetrial.engines import environments as e; e.add('jax', print, python={str(python)!r})"
    path = os.pathsep.join(sys.path)
    env = {**os.environ, "FAKE_COUNT": str(count), "FAKE_SLEEP": "2", "PYTHONPATH": path}
    parent = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 20
    while not count.exists() and time.monotonic() < until:
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    found = locate.locate("jax")
    assert found.kind == "missing" and found.problem and "half made" in found.problem
    said: list[str] = []
    environments.add("jax", said.append, python=python)
    assert "waiting" in said[0] and count.read_text() == "begin\nend\n"
    assert locate.locate("jax").kind == "environment"


# --- removing, moving, ageing ---------------------------------------------------------------------------------------


def test_remove(data: Path, python: Path) -> None:
    environments.add("jax", quiet, python=python)
    assert environments.remove("keras-jax", quiet) == ("jax", "keras-jax")
    assert not (data / "jax").exists() and locate.locate("jax").kind == "missing"
    with pytest.raises(EnvironmentFailed, match="has no environment"):
        environments.remove("jax", quiet)


def test_removing_a_link_leaves_what_it_points_to(data: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    data.mkdir(parents=True)
    (data / "jax").symlink_to(tmp_path / "precious")
    environments.remove("jax", quiet)
    assert (tmp_path / "precious").is_dir() and not (data / "jax").is_symlink()


def test_a_moved_environment_is_not_used(data: Path, python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environments.add("jax", quiet, python=python)
    other = data.parent.parent / "other"
    data.parent.rename(other)
    monkeypatch.setenv("TIMETRIAL_HOME", str(other))
    found = locate.locate("jax")
    assert found.kind == "missing" and found.problem and f"made in {data / 'jax'}" in found.problem
    assert not doctor.check(found).ok
    environments.add("jax", quiet, python=python)
    assert locate.locate("jax").kind == "environment"


def test_older_pins_are_usable_but_said(data: Path, python: Path) -> None:
    environments.add("jax", quiet, python=python)
    change_marker(data / "jax", requirements_sha256="0" * 64)
    health = doctor.check(locate.locate("jax"))
    assert health.ok and health.problem and "older pins" in health.problem
    assert health.remedy == "timetrial engines add jax --again"
    said: list[str] = []
    environments.add("jax", said.append, python=python)
    assert any("older pins" in line and "--again" in line for line in said)


def test_a_lost_interpreter_and_a_broken_marker(data: Path, python: Path) -> None:
    environments.add("jax", quiet, python=python)
    (data / "jax" / "bin" / "python").unlink()
    assert "lost the Python 3.11.7" in str(locate.locate("jax").problem)
    (data / "jax" / "environment.json").write_text('{"family": "ja')
    assert "half made" in str(locate.locate("jax").problem)


def change_marker(folder: Path, **values: str) -> None:
    path = folder / marker.FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


# --- finding beside timetrial, and checking ---------------------------------------------------------------------------


def test_packages_beside_timetrial_are_found_but_not_imported(tmp_path: Path) -> None:
    """In a fresh process, with stand-ins for jax that would fail if anything imported them."""
    for name in ("jax", "jaxlib"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('imported')")
        info = tmp_path / f"{name}-1.2.3.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2.3\n")
    (tmp_path / "torch").mkdir()  # a mere folder is not the framework
    code = """
        import sys
        from timetrial.engines.locate import locate
        for name in ("jax", "jax@1.2.3", "jax@1.2.4", "torch", "reference"):
            found = locate(name)
            print(found.name, found.kind, found.version if name != "reference" else "-")
        print([name for name in ("numpy", "jax", "torch") if name in sys.modules])
    """
    env = {**os.environ, "TIMETRIAL_HOME": str(tmp_path / "home")}
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "jax beside 1.2.3",
        "jax@1.2.3 beside 1.2.3",
        "jax@1.2.4 missing None",
        "torch missing None",
        "reference beside -",
        "[]",
    ]


def test_an_environment_goes_before_what_is_beside(data: Path, python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "_importable", lambda name: True)
    found = locate.locate("jax")
    assert (found.kind, found.problem, found.remedy) == ("beside", None, None)
    environments.add("jax", quiet, python=python)
    assert locate.locate("jax").kind == "environment"
    (data / "jax" / "environment.json").unlink()
    found = locate.locate("jax")
    assert found.kind == "beside" and found.problem and "half made" in found.problem and "are used" in found.problem


def test_a_missing_engine_names_its_remedy(data: Path) -> None:
    assert not any(found.broken for found in locate.installed())  # there is nothing that could be
    health = doctor.check(locate.locate("torch@2.9.1"))
    assert not health.ok and health.seconds is None and health.remedy == "timetrial engines add torch@2.9.1"


def test_the_doctor_says_what_is_broken(data: Path, python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environments.add("jax", quiet, python=python)
    found = locate.locate("jax")
    good = doctor.check(found)
    assert good.ok and good.problem is None and good.python == "3.11.7" and good.seconds is not None
    assert good.versions["jax"] == pins.shipped(FAMILIES["jax"])["jax"]

    monkeypatch.setenv("FAKE_CRASH", "raise ImportError('broken')")
    broken = doctor.check(found)
    assert not broken.ok and "ImportError: broken" in str(broken.problem)
    assert broken.remedy == "timetrial engines add jax --again" and "Traceback" in broken.last_lines

    monkeypatch.setenv("FAKE_CRASH", "time.sleep(60)")
    begun = time.monotonic()
    hung = doctor.check(found, timeout=0.5)
    assert not hung.ok and "no answer in 0.5 s" in str(hung.problem) and time.monotonic() - begun < 20


def test_the_reference_is_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIMETRIAL_HOME", str(tmp_path))
    health = doctor.check(locate.locate("reference"))
    assert health.ok and set(health.versions) == {"numpy"}


def test_a_checks_answer_is_found_below_noise() -> None:
    line = 'TIMETRIAL-CHECK {"gradient": [[20.0, 28.0], [28.0, 40.0001]], "versions": {"a": "1"}, "python": "3.6.15"}'
    answer = checks.read(f"warning\n{line}\nbye")
    assert answer is not None and answer.right and answer.versions == {"a": "1"}
    assert checks.read("warning") is None
    assert not checks.Answer("3", {}, checks._close([[20.0, 28.0]])).right


# --- remedies -----------------------------------------------------------------------------------------------------


NO_MATCH = "ERROR: Could not find a version that satisfies the requirement torch==9 (from versions: {})"
PASSED_OVER = "ERROR: Ignored the following versions that require a different python version: 9 Requires-Python >=3.12"


@pytest.mark.parametrize(
    ("output", "cause", "remedy"),
    [
        (NO_MATCH.format("2.8.0, 2.9.0, 2.9.1"), "there are 2.9.1, 2.9.0, 2.8.0", "one of these versions"),
        (NO_MATCH.format("none"), "pip finds no torch==9", "pip's index settings"),
        (f"{PASSED_OVER}\n{NO_MATCH.format('2.8.0')}", "torch==9 needs Python >=3.12", "--python"),
        (f"{PASSED_OVER.replace(': 9', ': 8')}\n{NO_MATCH.format('2.8.0')}", "there are 2.8.0", "these versions"),
        (f"NewConnectionError\n{NO_MATCH.format('none')}", "could not be reached", "PIP_NO_INDEX=1"),
        ("OSError: [Errno 28] No space left on device", "the disk is full", "free about 200 MB"),
        ("ERROR: ResolutionImpossible: see below", "no set of packages", "nearer"),
        ("SSLError(SSLCertVerificationError)", "certificate", "PIP_CERT"),
        ("PermissionError: [Errno 13]", "could not be written", "TIMETRIAL_HOME"),
        ("something new", "could not install", "read the log"),
    ],
)
def test_remedies(output: str, cause: str, remedy: str) -> None:
    found = diagnose(output, 100)
    assert cause in found.cause and remedy in found.remedy


def test_many_versions_are_shortened() -> None:
    found = diagnose(NO_MATCH.format(", ".join(f"1.{n}" for n in range(40))), 100)
    assert "there are 1.39, 1.38" in found.cause and found.cause.endswith("and 28 older")
