"""All figures of the method, one after the other: against pyperf, adaptive stopping replayed, very many records.

python benchmarks/method.py [--only duel,replay,records] [--repetitions N] [--processes N]

Each part can be run alone as well and then has options of its own; what it keeps lies where this is run, so that the
same command goes on where it was stopped. The duel is the long part: about three minutes a repetition.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
PARTS = ("duel", "replay", "records")


def parts(text: str) -> tuple[str, ...]:
    """In the order of PARTS, whatever the order that they are named in."""
    named = [name.strip() for name in text.split(",")]
    if unknown := [name for name in named if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"there is no '{unknown[0]}'; use {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in named)


def command(part: str, asked: argparse.Namespace) -> list[str]:
    words = [sys.executable, str(HERE / f"{part}.py")]
    if part == "duel":
        given = {"--repetitions": asked.repetitions, "--processes": asked.processes}
        words += [word for name, value in given.items() if value is not None for word in (name, str(value))]
    return words


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", type=parts, default=PARTS, help="parts, with commas between: " + ", ".join(PARTS))
    parser.add_argument("--repetitions", type=int, help="of the duel")
    parser.add_argument("--processes", type=int, help="of each of Timetrial's cells in the duel")
    asked = parser.parse_args(given)
    failed = []
    for part in asked.only:
        print(f"--- {part}", flush=True)
        start = time.monotonic()
        if subprocess.run(command(part, asked), check=False).returncode:
            failed.append(part)
        print(f"--- {part}: {(time.monotonic() - start) / 60:.1f} min\n", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
