"""What a report says beside its figures: how they came about, on what, and where they fall short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from timetrial.records.choice import counted, floor_of, newest
from timetrial.records.record import Record
from timetrial.records.store import Unreadable
from timetrial.report import checks, energy, regions, words
from timetrial.report.summary import Group
from timetrial.stats.outliers import WARN

Pairs = list[tuple[str, str]]


def method(records: Sequence[Record]) -> Pairs:
    """Name and explanation of each rule, with the figures that these records show."""
    return [
        *[("Timed region", text) for text in regions.timed(records)],
        ("Repetition", _repetition(records)),
        ("Order", "Randomised blocks: each block runs every cell that is not known well enough yet once, in an order "
         "of its own; the first three hold every cell."),
        ("Warm-up", _warm_up()),
        ("Equivalence", _equivalence(records)),
        ("Threads", _threads(records)),
        ("Interval", "A process counts as the median of its laps. The 95 % interval is Student's t on the logarithms "
         "of the processes' values; ± is half its width, relative to the step time. With one process there is none."),
        ("Noise floor", _floor(records)),
        ("Verdict", "Slower or same are said where Welch's interval of the ratio lies outside or inside the noise "
         "floor around equal; anything else is undecided. The claims of a table share an error of 5 % (Holm)."),
        *regions.method(records),
        *energy.method(records),
        ("The machine meanwhile", _machine(records)),
        *checks.method(records),
        *[("Harness", text) for text in [" ".join(_harness(records))] if text],
    ]  # fmt: skip


def _repetition(records: Sequence[Record]) -> str:
    profiles = ", ".join(sorted({str(record.cell.get("profile", words.NOTHING)) for record in records}))
    blocks = len({record.block for record in records})
    laps = [record.laps for record in records if record.laps]
    text = f"Profile {profiles}: {_count(blocks, 'block')}, each run a fresh process of its own."
    if laps:
        number, length = [len(lap.seconds) for lap in laps], [lap.steps for lap in laps]
        text += f" {_span(number)} laps a process, {_span(length)} steps a lap."
    return text


def _span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _floor(records: Sequence[Record]) -> str:
    found = floor_of(records)
    text = words.floor(found)
    if found.high is not None:
        text += f" Its 95 % interval reaches to {words.figures(100 * found.high, 2)} %."
    return text


def _machine(records: Sequence[Record]) -> str:
    """What the canary and the kernel's counters said around the runs."""
    watched = [record for record in counted(records) if record.canary]
    if not watched:
        return "Not watched."
    flagged = [record for record in watched if record.flags]
    again = sum(record.attempt > 0 for record in records)
    text = (
        f"A small fixed computation was timed before and after {_count(len(watched), 'run')}: "
        f"{len(flagged) or 'none'} of them {'stands' if len(flagged) == 1 else 'stand'} beside a machine that was not "
        "itself steady"
    )
    text += f"; {_count(again, 'run')} were made again for that reason." if again else "."
    remarks = Counter(remark.partition(":")[2].strip() for record in watched for remark in record.remarks)
    seen = sum(bool(record.remarks) for record in watched)
    if seen:
        text += (
            f" Others were busy on the machine during {_count(seen, 'run')}; remedy: {remarks.most_common(1)[0][0]}."
        )
    return text


def _warm_up() -> str:
    from timetrial.runner.profiles import LapPlan

    return (
        f"Single steps until the medians of two windows of {LapPlan.window} differ by at most "
        f"{100 * LapPlan.tolerance:g} %, or the profile's time is up; then laps are lengthened until the clock is "
        "exact enough. None of it is in the step time."
    )


def _equivalence(records: Sequence[Record]) -> str:
    from timetrial.runner.gate import SAMPLES, STEPS
    from timetrial.stats.equivalence import TOLERANCES

    used = sorted({str(record.cell.get("precision")) for record in records} & TOLERANCES.keys())
    limits = "; ".join(
        f"{name}: outputs {_power(t.forward)}, gradients {_power(t.gradient)}, after {STEPS} steps {_power(t.steps)}"
        for name, t in ((name, TOLERANCES[name]) for name in used)
    )
    return (
        f"Before any time counts, each engine starts from the same weights and the same {SAMPLES} samples a batch, and "
        "its outputs, loss, gradients and updates are held against a reference in float64. "
        f"{f'Largest relative errors allowed in {limits}. ' if limits else ''}What fails is shown as wrong, not ranked."
    )


def _power(value: float) -> str:
    """1e-4 as people write it."""
    return f"{value:.0e}".replace("e-0", "e-")


def _threads(records: Sequence[Record]) -> str:
    from timetrial.runner.executor import THREAD_SLACK

    shipped = {record.cell.get("threads") == "as-shipped" for record in records}
    checked = (
        "Set by variables, by calls and by the cores given, then checked: a run that used more than "
        f"{THREAD_SLACK:g} times the processor time of its threads is invalid."
    )
    free = "As each engine ships them, on all cores of the machine: what it used is shown and not held against a limit."
    return " ".join(text for here, text in ((False, checked), (True, free)) if here in shipped)


def _harness(records: Sequence[Record]) -> Iterator[str]:
    shares = [
        record.effort.idle_step_seconds / (sum(record.laps.seconds) / len(record.laps.seconds))
        for record in records
        if record.effort and record.laps
    ]
    if shares:
        yield f"The measuring loop itself takes at most {100 * max(shares):.2g} % of a step (a step that does nothing)."
    waiting = [record.parent_cpu_share for record in records if record.parent_cpu_share is not None]
    if waiting:
        yield f"The waiting parent used at most {100 * max(waiting):.2g} % of one core while an engine ran."


def machine_facts(found: Mapping[str, Any] | None) -> Pairs:
    """Of the inventory beside the records. What could not be read is '-'."""
    if found is None:
        return []
    limits = _part(found, "limits")
    facts = [
        ("Processor", _text(_part(found, "cpu").get("model"))),
        ("Cores", _cores(_part(found, "cpu"))),
        ("Instruction sets", _listed(_part(found, "cpu").get("flags"))),
        ("Memory", _bytes(_part(found, "memory").get("total"))),
        ("GPUs", _gpus(found.get("gpus"))),
        ("System", _text(_part(found, "software").get("os"))),
        ("Kernel", _text(_part(found, "software").get("kernel"))),
        ("C library", _text(_part(found, "software").get("libc"))),
        ("Virtualisation", _virtual(_part(found, "virtualisation"))),
        ("Load before the study", _load(found.get("load"))),
    ]
    if limits.get("cpus") is not None or limits.get("memory") is not None:
        facts.append(("Limits", f"{_text(limits.get('cpus'))} cores, {_bytes(limits.get('memory'))}"))
    return facts


def _part(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = found.get(name)
    return part if isinstance(part, Mapping) else {}


def _text(value: object) -> str:
    return words.NOTHING if value in (None, "") else str(value)


def _bytes(value: object) -> str:
    return words.memory(int(value)) if isinstance(value, (int, float)) else words.NOTHING


def _listed(values: object) -> str:
    return ", ".join(map(str, values)) if isinstance(values, list) and values else words.NOTHING


def _cores(cpu: Mapping[str, Any]) -> str:
    allowed = cpu.get("allowed")
    usable = len(allowed) if isinstance(allowed, list) else words.NOTHING
    physical, logical = _text(cpu.get("physical_cores")), _text(cpu.get("logical_cores"))
    return f"{physical} physical, {logical} logical, {usable} usable"


def _gpus(gpus: object) -> str:
    if not isinstance(gpus, list):
        return words.NOTHING
    named = [gpu for gpu in gpus if isinstance(gpu, Mapping)]
    return "; ".join(
        f"{_text(gpu.get('name'))}, {_bytes(gpu.get('memory'))}, driver {_text(gpu.get('driver'))}" for gpu in named
    ) or "none"  # fmt: skip


def _virtual(found: Mapping[str, Any]) -> str:
    if found.get("hypervisor") is None and not found.get("container"):
        return words.NOTHING
    parts = ["virtual machine" if found.get("hypervisor") else "", str(found.get("container") or "")]
    product = found.get("product")
    return ", ".join([part for part in parts if part] + ([str(product)] if product else [])) or "none seen"


def _load(load: object) -> str:
    if not isinstance(load, list) or not load:
        return words.NOTHING
    return f"{load[0]} processes ready to run (mean of a minute)"


def versions(records: Iterable[Record]) -> list[tuple[str, str]]:
    """Packages by engine. More than one version of the same package is said as such."""
    found: dict[str, dict[str, set[str]]] = {}
    for record in records:
        for package, version in record.versions.items():
            found.setdefault(str(record.cell.get("engine")), {}).setdefault(package, set()).add(version)
    return [
        (engine, ", ".join(f"{package} {' and '.join(sorted(seen))}" for package, seen in sorted(packages.items())))
        for engine, packages in sorted(found.items())
    ]


def shortcomings(groups: Sequence[Group], found: Sequence[Record], unreadable: Sequence[Unreadable]) -> list[str]:
    """Of all records that were found, also of those that do not count."""
    records = newest(found)
    return [
        *_unmeasured(groups),
        *_thin(groups),
        *_unstable(groups),
        *_flagged(groups),
        *_scattered(groups),
        *energy.shortcomings(records),
        *checks.shortcomings(records),
        *regions.threads(records),
        *_older(len(found) - len(records)),
        *_mixed(records),
        *_stand_ins(records),
        *[f"{item.path}: left out, {item.reason}." for item in unreadable],
    ]


def remarks(groups: Sequence[Group], found: Sequence[Record]) -> list[str]:
    """Of these, what was odd while it was measured, in short: that is said on the terminal too."""
    records = newest(found)
    rows = [row for group in groups for row in group.rows if row.step]
    flagged, scattered = sum(row.flagged for row in rows), sum(row.severe > WARN for row in rows)
    said = [f"The machine was not steady during {_count(flagged, 'run')} of those that count."] if flagged else []
    if scattered:
        said.append(f"Laps far from the others of their process: in {_count(scattered, 'cell')} of {len(rows)}.")
    return [*said, *_older(len(found) - len(records)), *checks.shortcomings(records), *regions.threads(records)]


def _unmeasured(groups: Sequence[Group]) -> Iterator[str]:
    kinds: dict[str, dict[str, None]] = {}
    for group in groups:
        for row in group.rows:
            if not row.step:
                kinds.setdefault(row.outcome.kind, {})[row.engine] = None
    for kind, engines in kinds.items():
        yield f"Not measured everywhere ({kind}): {', '.join(engines)}. The reasons stand below the tables."
    for group in groups:
        for row in group.rows:
            if row.step and not row.equivalence:
                yield f"{row.engine} ({group.title}): that it computes the same function is not proved."


def _thin(groups: Sequence[Group]) -> Iterator[str]:
    from timetrial.runner.design import LEAST

    for group in groups:
        counts = {row.engine: row.step.processes for row in group.rows if row.step}
        most = max(counts.values(), default=0)
        for engine, count in counts.items():
            if count == 1:
                yield f"{engine} ({group.title}): one process only, so it has no interval and no verdict."
            elif count < min(most, LEAST):  # more than the least, and it was known well enough
                yield f"{engine} ({group.title}): {count} processes where others have {most}."


def _unstable(groups: Sequence[Group]) -> Iterator[str]:
    for group in groups:
        for row in group.rows:
            if row.step and not row.stable:
                yield f"{row.engine} ({group.title}): its steps had not settled when the time for warming up was over."


def _flagged(groups: Sequence[Group]) -> Iterator[str]:
    for group in groups:
        for row in group.rows:
            if row.step and row.flagged:
                of = f"{row.flagged} of its {_count(row.step.processes, 'run')}"
                yield f"{row.engine} ({group.title}): the machine was not steady during {of}."


def _scattered(groups: Sequence[Group]) -> Iterator[str]:
    for group in groups:
        for row in group.rows:
            if row.severe > WARN:
                yield (
                    f"{row.engine} ({group.title}): {100 * row.severe:.0f} % of its laps lie far from the others of "
                    "their process; all of them count. Something else was at work: see that the machine is left alone."
                )
            if row.resampled is False:
                yield (
                    f"{row.engine} ({group.title}): resampling its processes gives another interval, so that these are "
                    "skewed or of two kinds; more processes would tell."
                )


def _older(count: int) -> Iterator[str]:
    if count:
        made = f"{_count(count, 'run')} {'is' if count == 1 else 'are'} left out: made with other code or versions"
        yield f"{made} than the newest runs of their cells."


def _mixed(records: Sequence[Record]) -> Iterator[str]:
    """Cells of one engine that were measured with different software differ by more than their names say."""
    seen: dict[str, dict[str, set[str]]] = {}
    for record in records:
        if record.outcome.ok:
            kept = seen.setdefault(str(record.cell.get("engine")), {})
            for name, value in {**record.versions, "the adapter": record.hashes.get("adapter", "")}.items():
                kept.setdefault(name, set()).add(value)
    for engine, parts in sorted(seen.items()):
        for name, values in parts.items():
            if len(values) > 1:
                yield f"{engine}: its runs were made with {len(values)} versions of {name}; measure again with --fresh."
    machines = {record.machine for record in records if record.machine}
    if len(machines) > 1:
        yield f"The records come from {len(machines)} machines; times are compared within a machine only."


def _stand_ins(records: Sequence[Record]) -> Iterator[str]:
    names = sorted({str(record.cell.get("dataset", "")) for record in records})
    synthetic = [name for name in names if _is_synthetic(name)]
    if synthetic:
        yield f"The data are synthetic ({', '.join(synthetic)}): times hold, accuracy says nothing about real data."


def _is_synthetic(dataset: str) -> bool:
    from timetrial.data.registry import find

    try:
        return find(dataset).synthetic
    except ValueError:  # of another version, or with an option of another: nothing is known about it
        return False


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
