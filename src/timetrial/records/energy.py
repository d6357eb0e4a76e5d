"""What a run took in joules. Of each domain where its figure comes from; what was not measured is None and says why."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from timetrial.stats.energy import above_idle, edp, total


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Domain(_Model):
    """`joules` is all that the domain took during the window, its idle power included."""

    domain: str
    device: str
    source: str  # RAPL, NVML, replay, model
    kind: str  # counter, power
    inside: bool = False  # part of another domain: shown, and not added to it
    joules: float | None = None
    idle_watts: tuple[float, float] | None = None  # before and after the run
    updates: int | None = None  # of the counter, or samples of the power, during the window
    wraps: int = 0  # how often the counter began again
    reason: str = ""  # why it was not measured


class Energy(_Model):
    """Of the steady laps of one run. Devices that take no part in it are idle, and still take energy."""

    device: str = "cpu"  # of the placement; the processors take part whatever it is
    seconds: float | None = None  # the window
    steps: int | None = None
    domains: tuple[Domain, ...] = ()
    absent: tuple[str, ...] = ()  # sources that could not be read on this machine
    short: str = ""  # why the window is too short for the figures to be trusted
    reason: str = ""  # why nothing was measured

    def parts(self, with_idle: bool = False) -> tuple[Domain, ...]:
        """What makes up the sum: the devices that take part, or all of them."""
        return tuple(one for one in self.domains if not one.inside and (with_idle or self.takes_part(one.device)))

    def takes_part(self, device: str) -> bool:
        return device in ("cpu", self.device)

    @property
    def has_idle_devices(self) -> bool:
        return len(self.parts(with_idle=True)) > len(self.parts())

    def joules(self, with_idle: bool = False) -> float | None:
        """None where one of the parts is not known, or none is of the device that was asked for."""
        parts = self.parts(with_idle)
        known = any(one.device == self.device for one in parts)
        return total(one.joules for one in parts) if known else None

    def active_joules(self) -> float | None:
        """Beyond what the same domains take while nothing runs."""
        return total(
            None if one.joules is None or one.idle_watts is None or self.seconds is None
            else above_idle(one.joules, sum(one.idle_watts) / 2, self.seconds)
            for one in self.parts()
        ) if self.joules() is not None else None  # fmt: skip

    @property
    def problem(self) -> str:
        """Why there is no sum, in words; empty where there is one."""
        if self.reason or self.joules() is not None:
            return self.reason
        broken = next((f"{one.domain}: {one.reason}" for one in self.parts() if one.reason), "")
        return broken or f"nothing on this machine tells the energy of {self.device}"

    def per_step(self, joules: float | None) -> float | None:
        return None if joules is None or not self.steps else joules / self.steps

    def edp(self, with_idle: bool = False) -> float | None:
        """Of one step, in joule seconds; its time is that of the same laps."""
        joules = self.joules(with_idle)
        if joules is None or not self.steps or self.seconds is None:
            return None
        return edp(self.seconds / self.steps, [joules / self.steps])
