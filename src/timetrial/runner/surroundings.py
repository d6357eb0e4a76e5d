"""The environment variables of a run: cleaned, then set on purpose, before anything is imported."""

from __future__ import annotations

import os
from collections.abc import Mapping

from timetrial.meters.hardware import Machine, cores_for
from timetrial.spec.placement import Placement
from timetrial.spec.trial import Settings, Trial

# What a program needs to find itself and its libraries; everything else could change what is measured.
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH")
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_NEVER_TRIM = str(2**62)


def surroundings(
    placement: Placement, settings: Settings, extra: Mapping[str, str], parent: Mapping[str, str] = os.environ
) -> dict[str, str]:
    variables = {name: parent[name] for name in _KEPT if name in parent}
    if settings.threads == "limited":
        threads = str(placement.threads)
        variables.update(dict.fromkeys(_THREADS, threads))
        variables.update(TF_NUM_INTRAOP_THREADS=threads, TF_NUM_INTEROP_THREADS="1")
    variables.update(
        TF_CPP_MIN_LOG_LEVEL="3",
        TF_ENABLE_ONEDNN_OPTS="1",
        PYTHONHASHSEED="0",
        PYTHONNOUSERSITE="1",
        PYTHONDONTWRITEBYTECODE="1",
        CUDA_VISIBLE_DEVICES=_visible(placement),
        CUDA_DEVICE_ORDER="PCI_BUS_ID",  # as the driver numbers them, who tells their memory and energy
        XLA_PYTHON_CLIENT_PREALLOCATE="false",
    )
    if settings.allocator == "tuned":
        # glibc gives big blocks back at once by default: a step then spends its time in page faults.
        variables.update(MALLOC_TRIM_THRESHOLD_=_NEVER_TRIM, MALLOC_MMAP_THRESHOLD_=_NEVER_TRIM)
    if waits := _waits(settings):
        variables["OMP_WAIT_POLICY"] = waits.upper()
    return {**variables, **extra}


def _waits(settings: Settings) -> str:
    """Threads that spin while they wait take a core from others: cores are shared unless an engine runs as it ships."""
    if settings.wait != "default":
        return settings.wait
    return "passive" if settings.allocator == "tuned" else ""


def cores_given(trial: Trial, machine: Machine) -> tuple[int, ...]:
    """One for each thread of the placement; all that there are where an engine runs as it ships."""
    shipped = trial.settings.threads == "as-shipped" and machine.cpu.allowed
    return cores_for(len(machine.cpu.allowed or ()) if shipped else trial.placement.threads, machine)


def _visible(placement: Placement) -> str:
    return placement.device.partition(":")[2] if placement.device.startswith("cuda:") else ""
