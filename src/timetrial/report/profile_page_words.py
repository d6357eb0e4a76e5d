"""What a page of profiles says about itself: its captions, how to read it, and what falls short."""

from __future__ import annotations

from timetrial.profiling.bottlenecks import NEAR, SHORT_NS
from timetrial.profiling.profile import LEAST_ATTRIBUTED, LEAST_COVERAGE, MOST_OVERHEAD
from timetrial.report.profile_groups import Seen

TRUST = "Step without profiler: median of rounds in the same process"
KINDS = "Shares of the step under the profiler; they add up to one"
LAYERS = "Time of a step under the profiler, and its share of it"
BESIDE = "Multiply-adds and bytes are counted from the network, times are measured under the profiler"
TYPES = "As the engine names its operations; time that nested operations took is theirs alone"
CLASSES = "The same few classes for all engines"
SHARES = "A bar is one step under the profiler. Profiles that are not enough evidence have none."
CHART_OF_LAYERS = (
    "A bar is a layer of one engine, its phases one after the other. What no layer owns, such as the loss and the "
    "optimiser, is in the table."
)
ROOF = (
    "A dot is a layer in one phase, as large as its time. The line is the most that any library reached on this "
    "machine with the same threads: bandwidth (dashed), then arithmetic. Operations and bytes are counted from the "
    "network, not measured. Layers without multiply-adds have no place here."
)


def method() -> list[tuple[str, str]]:
    return [
        (
            "Evidence",
            f"A profile is enough if its operations cover {100 * LEAST_COVERAGE:.0f} % of its steps, "
            f"{100 * LEAST_ATTRIBUTED:.0f} % of their time has a layer or a phase, the profiler slows a step by no "
            f"more than {MOST_OVERHEAD:.2f}x, and nobody else wanted the cores. Else nothing is concluded from it.",
        ),
        (
            "Time of a step",
            "The headline is of rounds without the profiler, in turn with those that were traced, in one process: it "
            "has no interval, so engines are not ranked by it; timetrial run does that. All other times are of the "
            "traced steps. At each instant the operations that run share it equally.",
        ),
        (
            "What holds a step up",
            "Fetching a batch as far as nothing else runs; the optimiser; gaps, the framework's own running about and "
            f"operations below {SHORT_NS / 1e3:.0f} µs (unless their layer reaches {100 * NEAR:.0f} % of the limit); "
            "copies and transposes; and the layers' own operations, limited by arithmetic or by bandwidth as their "
            "operations for each byte lie above or below the roof's corner. Where several fit, the first of these.",
        ),
        (
            "The limit",
            "The best matrix product of any installed library and the best sweep over memory, with the same threads, "
            "measured in the same session. More than 100 % is possible: caches serve what is counted as moved.",
        ),
        (
            "Counted",
            "Multiply-adds and bytes follow from the network alone and are the same for every engine. Bytes are those "
            "that have to be read and written at least once; an engine may move more.",
        ),
    ]


def versions(seen: Seen) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(seen.profile.header.versions.items()))


def shortcomings(seen: Seen) -> list[str]:
    head, found = seen.profile.header, seen.diagnosis
    said = [f"not enough evidence, {problem}." for problem in head.problems]
    said += [f"no percent of the limit: {found.no_roof}."] if found.roof is None else []
    if head.granularity_lost:
        said.append(
            f"{100 * head.granularity_lost:.1f} % of its time is in operations that did the work of several layers, "
            "split by what each layer computes."
        )
    if head.overlapping:
        said.append(f"{head.overlapping:,} spans overlap as no thread's can.")
    return [f"{seen.name} ({head.model}, {head.task}): {text}" for text in (*said, *head.remarks)]
