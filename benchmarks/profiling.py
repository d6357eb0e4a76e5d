"""How much of a step the profiles explain, and what they cost it: on the profiled study's network and a plain one.

python benchmarks/profiling.py [--engines torch,jax] [--records FOLDER] [--fresh]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from timetrial.cli.loading import changed, open_study, trials_of
from timetrial.profiling.profile import Header, load
from timetrial.profiling.schema import TraceError
from timetrial.records.choice import counted
from timetrial.records.store import Store
from timetrial.runner.campaign import Campaign

STUDY = Path(__file__).with_suffix(".yaml")
HEAD = (
    f"{'network':14} {'task':6} {'engine':17} {'plain step':>11}  {'coverage':>8}  "
    f"{'attributed':>10}  {'overhead':>8}  {'total':>8}  {'split':>5}  short of"
)
COVERAGE, ATTRIBUTED, OVERHEAD, RECOVERED = 0.95, 0.95, 1.05, 0.03


def missed(found: Header) -> str:
    """Which of the aims it falls short of."""
    short = [
        name
        for name, held in (
            ("coverage", found.coverage >= COVERAGE),
            ("attributed", found.attributed >= ATTRIBUTED),
            ("overhead", found.overhead <= OVERHEAD),
            ("total", abs(found.recovered - 1) <= RECOVERED),
        )
        if not held
    ]
    return ", ".join(short) or "all reached"


def line(found: Header) -> str:
    return (
        f"{found.model:14} {found.task:6} {found.engine:17} {1e3 * found.step_seconds:8.2f} ms  "
        f"{found.coverage:8.3f}  {found.attributed:10.3f}  {found.overhead:8.3f}  {found.recovered:8.3f}  "
        f"{found.granularity_lost:5.2f}  {missed(found)}{'; contended' if found.contended else ''}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engines", help="only these, with commas between")
    parser.add_argument("--records", type=Path, help="keep the records here")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there")
    asked = parser.parse_args()
    study = changed(open_study(str(STUDY)), engines=asked.engines.split(",") if asked.engines else None)
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.records or Path(temporary)
        for record in Campaign(study, trials_of(study), folder, asked.fresh).go():
            print(f"{record.cell['model']} {record.cell['task']} {record.cell['engine']} {record.role}: "
                  f"{record.outcome.kind} {record.outcome.reason}", flush=True)  # fmt: skip
        print(f"\naims: coverage >= {COVERAGE}, attributed >= {ATTRIBUTED}, overhead <= {OVERHEAD}, "
              f"total of the operations within {RECOVERED:.0%} of the step without a profiler")  # fmt: skip
        print(HEAD)
        for record in counted(Store(folder).records(study.study)):
            if record.profile is not None:
                try:
                    print(line(load(folder / study.study, record).header))
                except TraceError as error:
                    print(f"{record.cell['model']} {record.cell['task']} {record.cell['engine']}: {error}")


if __name__ == "__main__":
    main()
