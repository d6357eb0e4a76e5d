"""The worker runs in the engines' interpreters, down to CPython 3.6: its syntax, its imports, and what it may call."""

from __future__ import annotations

import ast
import functools
import glob
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKER = ROOT / "src" / "timetrial_worker"
OTHERS = ("tests/contract/probe.py", "tests/contract/probe_dropout.py", "benchmarks/beside.py")
FILES = [*sorted(WORKER.rglob("*.py")), *(ROOT / name for name in OTHERS)]
NAMES = [str(file.relative_to(ROOT)) for file in FILES]

# What CPython 3.6 has not, though it parses.
NEWER_MODULES = {
    "contextvars", "dataclasses", "graphlib", "importlib.metadata", "importlib.resources", "multiprocessing.shared_memory",
    "tomllib", "zoneinfo",
}  # fmt: skip
NEWER_NAMES = {
    "functools.cache", "functools.cached_property", "math.comb", "math.dist", "math.isqrt", "math.prod", "shlex.join",
    "signal.raise_signal", "statistics.fmean", "threading.excepthook", "threading.get_native_id",
    *(f"time.{clock}_ns" for clock in ("monotonic", "perf_counter", "process_time", "thread_time", "time")),
}  # fmt: skip
NEWER_METHODS = {"fromisoformat", "is_relative_to", "reconfigure", "removeprefix", "removesuffix"}
NEWER_KEYWORDS = {"capture_output", "dirs_exist_ok", "missing_ok"}
AT_MODULE_LEVEL = sys.stdlib_module_names | {"numpy", "timetrial", "timetrial_worker"}
FRAMEWORKS = {"cntk", "jax", "keras", "onnxruntime", "openvino", "sklearn", "tensorflow", "theano", "torch"}

SHOWN_WITH_ITS_NAME = re.compile(r"\{[^{}]*[^{}=!<>]=\s*(?:![rsa])?(?::[^{}]*)?\}")


def faults(source: str, before_start: bool = True) -> list[str]:
    """Why CPython 3.6, or one without the framework, would not take this source, each with its line."""
    try:
        tree = ast.parse(source, feature_version=(3, 6))
    except SyntaxError as error:
        return [f"line {error.lineno}: {error.msg}"]
    found = [*_syntax(tree, source), *_imports(tree, before_start), *_uses(tree, source)]
    return [f"line {line}: {reason}" for line, reason in sorted(found)]


def _syntax(tree: ast.Module, source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.NamedExpr):
            yield node.lineno, "an assignment inside an expression"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and node.args.posonlyargs:
            yield node.lineno, "positional-only parameters"
        elif isinstance(node, ast.JoinedStr):
            text = (ast.get_source_segment(source, node) or "").replace("{{", "").replace("}}", "")
            if SHOWN_WITH_ITS_NAME.search(text):
                yield node.lineno, "an f-string that shows a value with its name"


def _imports(tree: ast.Module, before_start: bool) -> Iterator[tuple[int, str]]:
    for line, module in _imported(tree):
        if module == "__future__.annotations":
            yield line, "from __future__ import annotations"
        elif any(module == newer or module.startswith(newer + ".") for newer in NEWER_MODULES):
            yield line, f"module {module} is newer"
        elif module.split(".")[0] == "timetrial":
            yield line, "the worker does not import the parent"
    allowed = AT_MODULE_LEVEL if before_start else AT_MODULE_LEVEL | FRAMEWORKS
    for statement in _run_at_import(tree.body):
        for line, module in _imported(statement):
            if module.split(".")[0] not in allowed:
                yield line, f"module {module} is imported before an engine is started"


def _imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _run_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Import statements that run when the module is imported: everywhere but in functions."""
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in ast.iter_child_nodes(statement):
                nested = inner.body if isinstance(inner, ast.ExceptHandler) else [inner]
                yield from _run_at_import([child for child in nested if isinstance(child, ast.stmt)])


def _uses(tree: ast.Module, source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = f"{ast.unparse(node.value)}.{node.attr}"
            owner, _, attribute = name.rpartition(".")
            if name in NEWER_NAMES and f'hasattr({owner}, "{attribute}")' not in source:
                yield node.lineno, f"{name} is newer; ask with hasattr first"
            elif attribute in NEWER_METHODS:
                yield node.lineno, f"method {attribute} is newer"
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            given = {keyword.arg for keyword in node.keywords}
            if given & NEWER_KEYWORDS or ("text" in given and called.startswith("subprocess.")):
                yield node.lineno, f"an argument of {called} is newer"
            elif called == "breakpoint":
                yield node.lineno, "breakpoint is newer"


def python36() -> str | None:
    candidates = [
        os.environ.get("TIMETRIAL_PYTHON36"),
        shutil.which("python3.6"),
        *sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.6*/bin/python"))),
    ]
    return next((path for path in candidates if path and _is_36(path)), None)


def _is_36(path: str) -> bool:
    """A name on the PATH may be a shim without an interpreter behind it."""
    try:
        code = "import sys; sys.exit(sys.version_info[:2] != (3, 6))"
        return subprocess.run([path, "-c", code], capture_output=True, stdin=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


@functools.cache
def imported_before_start() -> frozenset[str]:
    """All modules that the worker has loaded when every adapter is, and none is started."""
    code = """if 1:
        import importlib, json, sys
        from timetrial_worker import adapters
        import timetrial_worker.__main__
        for target in adapters.ADAPTERS.values():
            importlib.import_module("timetrial_worker.adapters." + target.split(":")[0])
        print(json.dumps(sorted(sys.modules)))
    """
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return frozenset(json.loads(done.stdout))


def before_start(file: Path) -> bool:
    """Modules that only an adapter's `start` imports may import its framework; all others may not."""
    helper = file.parent == WORKER / "adapters" and file.stem not in ("__init__", "base")
    return not helper or f"timetrial_worker.adapters.{file.stem}" in imported_before_start()


def test_no_framework_is_imported_before_an_engine_is_started() -> None:
    assert "timetrial_worker.adapters.reference" in imported_before_start()
    assert imported_before_start() & FRAMEWORKS == set()


def test_there_is_a_worker_to_check() -> None:
    assert "src/timetrial_worker/adapters/base.py" in NAMES
    assert all(file.is_file() for file in FILES)


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_the_worker_is_python_36(file: Path) -> None:
    assert faults(file.read_text(encoding="utf-8"), before_start(file)) == []


def test_python_36_compiles_the_worker() -> None:
    interpreter = python36()
    if interpreter is None:
        pytest.skip("no CPython 3.6: set TIMETRIAL_PYTHON36, or put python3.6 on the PATH")
    code = "import sys; [compile(open(f, encoding='utf-8').read(), f, 'exec') for f in sys.argv[1:]]"
    done = subprocess.run(
        [interpreter, "-c", code, *map(str, FILES)], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("source", "fault"), [
    ("if (n := 3): pass", "line 1: "),
    ("def f(a, /): pass", "line 1: "),
    ("x = 1\nf'{x=}'", "line 2: "),
    ("x = 1\nf'{x=!r:>9}'", "line 2: "),
    ("match 1:\n    case 1: pass", "line 2: "),
    ("from __future__ import annotations", "line 1: "),
    ("import dataclasses", "line 1: module dataclasses is newer"),
    ("def f():\n    from importlib import resources", "line 2: module importlib.resources is newer"),
    ("import torch", "line 1: module torch is imported before an engine is started"),
    ("try:\n    import keras.layers\nexcept ImportError:\n    from jax import numpy",
     "line 2: module keras.layers is imported before an engine is started"),
    ("try:\n    pass\nexcept ImportError:\n    from jax import numpy", "line 4: module jax.numpy is imported"),
    ("class A(object):\n    import tensorflow", "line 2: module tensorflow is imported"),
    ("import pandas", "line 1: module pandas is imported"),
    ("if 1:\n    pass\nelse:\n    import theano", "line 4: module theano is imported"),
    ("def f():\n    import timetrial.spec", "line 2: the worker does not import the parent"),
    ("import time\ntime.perf_counter_ns()", "line 2: time.perf_counter_ns is newer"),
    ("'ab'.removeprefix('a')", "line 1: method removeprefix is newer"),
    ("import subprocess\nsubprocess.run([], capture_output=True)", "line 2: an argument of subprocess.run is newer"),
    ("import subprocess\nsubprocess.run([], text=True)", "line 2: an argument of subprocess.run is newer"),
])  # fmt: skip
def test_what_is_too_new_is_found(source: str, fault: str) -> None:
    found = faults(source)
    assert found, source
    assert found[0].startswith(fault)


@pytest.mark.parametrize("source", [
    "import os, numpy as np\nfrom timetrial_worker.adapters import base\nfrom . import proof",
    "def start():\n    import torch\n    from jax import numpy",
    "x = 1\ny = 'a'\nf'{x!r} {{a=}} {x == 1} {x:>{x}} {f(y=x)} {x != 1}'",
    "import time\nclock = time.perf_counter_ns if hasattr(time, \"perf_counter_ns\") else None",
    "class A(object):\n    def f(self):\n        import keras",
])  # fmt: skip
def test_what_python_36_takes_is_no_fault(source: str) -> None:
    assert faults(source) == []


def test_a_framework_may_be_imported_once_its_engine_is_started() -> None:
    assert faults("import torch", before_start=False) == []
    assert faults("import pandas", before_start=False) == [
        "line 1: module pandas is imported before an engine is started"
    ]
