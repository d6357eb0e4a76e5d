"""Event files are what TensorFlow's own reader reads."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import engines
from timetrial.report.tensorboard import EventFile

READ = """
import json, sys
import tensorflow as tf
events = list(tf.compat.v1.train.summary_iterator(sys.argv[1]))
found = [[v.tag, v.simple_value, e.step, e.wall_time] for e in events for v in e.summary.value]
print(json.dumps([events[0].file_version, found]))
"""


@pytest.mark.engines
def test_tensorflow_reads_what_was_written(tmp_path: Path) -> None:
    file = EventFile(tmp_path, clock=lambda: 1234.5)
    file.hear({"event": "progress", "epoch": 1, "epochs": 2, "step": 70_000, "step_seconds": 0.25, "loss": 0.5})
    file.hear({"event": "epoch", "epoch": 1, "epochs": 2, "step": 70_000, "loss": 0.5, "accuracy": 0.75})
    file.close()
    command = [str(engines.interpreter("tensorflow")), "-c", READ, str(file.path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    version, found = json.loads(done.stdout.splitlines()[-1])
    assert version == "brain.Event:2"
    assert found == [
        ["train/loss", 0.5, 70_000, 1234.5],
        ["train/step_seconds", 0.25, 70_000, 1234.5],
        ["epoch/loss", 0.5, 70_000, 1234.5],
        ["test/accuracy", 0.75, 70_000, 1234.5],
    ]
