"""Real engines through the command line, as a person would: the gate, a small study, the table, the records."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import engines

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]

STUDY = """
study: e2e
models: [quick/lstm]
engines: [{engines}]
data: fashion-mnist-6000
samples: 640
repeat: 1
profile: quick
accuracy: true
"""


def timetrial(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "timetrial", *words], cwd=folder, capture_output=True, text=True, timeout=850
    )


def test_six_engines_agree_with_the_reference_on_a_published_network(tmp_path: Path) -> None:
    for engine in engines.TODAY:
        engines.find(engine)
    done = timetrial("verify", "--model", "backends/cnn-softmax", "--engines", "all", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {answer["engine"]: answer for answer in json.loads(done.stdout)}
    assert set(engines.TODAY) <= set(found)
    for engine in engines.TODAY:
        summary = found[engine]["summary"]
        assert found[engine]["outcome"]["kind"] == "ok"
        assert summary["passed"]
        assert summary["forward"] < 1e-4
        assert summary["gradient"] < 1e-3


def test_a_study_of_real_engines_leaves_whole_records_and_a_report(tmp_path: Path) -> None:
    for engine in engines.TODAY:
        engines.find(engine)
    (tmp_path / "e2e.yaml").write_text(STUDY.format(engines=", ".join(engines.TODAY)))
    done = timetrial("run", "e2e.yaml", "--json", "--report", "page.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    groups = json.loads(done.stdout)["groups"]
    assert len(groups) == 1
    for group in groups:
        rows = {row["engine"]: row for row in group["rows"]}
        assert set(rows) == set(engines.TODAY)
        for row in rows.values():
            assert row["outcome"]["kind"] == "ok", row["outcome"]
            assert row["equivalence"]["passed"]
            assert row["step"]["value"] > 0
            assert row["memory"] > 50 * 2**20
        trained = [row["accuracy"] for row in rows.values() if row["accuracy"] is not None]
        # The same weights, batches and steps: what is left between engines is rounding.
        assert not trained or max(trained) - min(trained) < 0.05
    assert (tmp_path / "page.html").stat().st_size > 500_000

    again = timetrial("run", "e2e.yaml", "--json", folder=tmp_path)
    assert "7 runs are already measured" in again.stderr
    query = "SELECT cell.engine AS engine, count(*) AS runs FROM runs GROUP BY ALL ORDER BY ALL"
    answer = timetrial("show", "--sql", query, folder=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "keras-tensorflow" in answer.stdout
