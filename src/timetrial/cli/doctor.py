"""`timetrial doctor`: how fit this machine is for measuring, what to do about it, and what the machine is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from timetrial.cli.shared import FAILED, AsJson, console, explained, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from timetrial.meters.grade import Grade
    from timetrial.meters.hardware import Machine

UNKNOWN = "not known"
COLOURS = {"green": "green", "amber": "yellow", "red": "red"}


def doctor(
    as_json: AsJson = False,
    engines: Annotated[bool, typer.Option("--engines", help="Also let every installed engine do a step.")] = False,
) -> None:
    """Grade this machine for measuring, and show what times depend on: processor, memory, limits, GPUs, engines."""
    with explained():
        from dataclasses import asdict

        from timetrial.engines.locate import installed
        from timetrial.meters.grade import examine, grade
        from timetrial.meters.hardware import fingerprint, inventory

        machine, found = inventory(), installed()
        graded = grade(examine(machine))
        if as_json:
            here = [{"engine": e.name, "version": e.version, "found": e.kind} for e in found]
            grading = {"colour": graded.colour, "usable": graded.usable, "points": graded.points}
            print_json({"fingerprint": fingerprint(machine), **asdict(machine), "engines": here, "grade": grading})
        else:
            out = console()
            _print_grade(out, graded)
            for name, value in [*_facts(machine), ("fingerprint", fingerprint(machine))]:
                out.print(f"[bold]{name:18}[/] {value}")
            listed = ", ".join(f"{e.name} {e.version}" for e in found if e.interpreter)
            out.print(f"[bold]{'engines':18}[/] {listed or 'none; timetrial engines add torch tensorflow jax'}")
            if engines:
                from timetrial.cli.engines import check_engines

                check_engines(None, False)
        if not graded.usable:
            raise typer.Exit(FAILED)


def _print_grade(out: Console, graded: Grade) -> None:
    from rich.table import Table

    out.print(f"[bold]{graded.words()}[/]")
    table = Table("point", "grade", "found", "remedy", box=None, header_style="bold", pad_edge=False)
    for point in graded.points:
        colour = COLOURS.get(point.colour)
        word = "not known" if point.colour == "unknown" else point.colour
        table.add_row(point.name, f"[{colour}]{word}[/]" if colour else word, point.found, point.remedy)
    out.print(table)
    out.print()


def _facts(machine: Machine) -> list[tuple[str, str]]:
    from timetrial.meters.energy_sources import Choice, find
    from timetrial.report.words import memory

    cpu, soft, virtual, limits = machine.cpu, machine.software, machine.virtualisation, machine.limits
    levels = (("L1d", cpu.caches.l1d), ("L2", cpu.caches.l2), ("L3", cpu.caches.l3))
    caches = ", ".join(f"{name} {memory(size)}" for name, size in levels if size)
    return [
        ("processor", cpu.model or UNKNOWN),
        ("cores", f"{_or(cpu.physical_cores)} physical, {_or(cpu.logical_cores)} logical, "
                  f"{len(cpu.allowed) if cpu.allowed else UNKNOWN} of them for this process"),
        ("caches", caches or UNKNOWN),
        ("instructions", ", ".join(cpu.flags) if cpu.flags else UNKNOWN),
        ("frequency", f"{_or(cpu.frequency.mhz, '{:.0f} MHz')} now, governor {_or(cpu.frequency.governor)}, "
                      f"turbo {_switch(cpu.frequency.turbo)}, SMT {_switch(cpu.smt)}"),
        ("memory", f"{memory(machine.memory.total)}, {memory(machine.memory.available)} free, "
                   f"swap {memory(machine.memory.swap_total)}"),
        ("limits", f"{_or(limits.cpus, '{:g} cores', 'no core quota')}, "
                   f"{'no memory limit' if limits.memory is None else memory(limits.memory)}"),
        ("virtualisation", _virtual(virtual.hypervisor, virtual.product, virtual.container)),
        ("gpus", _gpus(machine)),
        ("energy", find(Choice()).listed),
        ("system", f"{soft.os or UNKNOWN}, kernel {soft.kernel or UNKNOWN}, {soft.libc or UNKNOWN}"),
        ("clock", f"{soft.clock_source or UNKNOWN}, resolution {soft.clock_resolution:.0e} s"),
        ("load", UNKNOWN if machine.load is None else " ".join(f"{value:.2f}" for value in machine.load)),
    ]  # fmt: skip


def _or(value: object, form: str = "{}", otherwise: str = UNKNOWN) -> str:
    return otherwise if value is None else form.format(value)


def _switch(value: bool | None) -> str:
    return UNKNOWN if value is None else "on" if value else "off"


def _virtual(hypervisor: bool | None, product: str | None, container: str | None) -> str:
    if hypervisor is None:
        return UNKNOWN
    machine = f"virtual machine ({product})" if product else "virtual machine"
    return (machine if hypervisor else "none") + (f", container {container}" if container else "")


def _gpus(machine: Machine) -> str:
    from timetrial.report.words import memory

    if machine.gpus is None:
        return "none that can be asked (no nvidia-smi)"
    return ", ".join(f"{gpu.name} {memory(gpu.memory)}" for gpu in machine.gpus) or "none"
