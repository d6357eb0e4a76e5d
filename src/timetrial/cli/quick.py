"""`timetrial quick`: the first answer, in about three minutes."""

from __future__ import annotations

from timetrial.cli.run import Engines, Fresh, Models, Repeat, Report
from timetrial.cli.shared import DEFAULT_RECORDS, AsJson, Records, explained


def quick(
    engines: Engines = None,
    models: Models = None,
    repeat: Repeat = None,
    records: Records = DEFAULT_RECORDS,
    fresh: Fresh = False,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Compare the engines of this machine on a small image network: about three minutes on two cores."""
    with explained():
        from timetrial.cli.loading import asked_for
        from timetrial.cli.running import carry_out

        study, trials = asked_for("quick", engines=engines, models=models, repeat=repeat)
        carry_out(study, trials, records, fresh=fresh, as_json=as_json, report=report)
