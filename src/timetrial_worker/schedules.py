"""Learning rate and momentum over the training. Pure: from the recipe and a place in time to numbers."""

import math


def rate_at(recipe, epoch, iteration):
    schedule, base = recipe["schedule"], recipe["optimiser"]["rate"]
    n = iteration if schedule.get("per") == "iteration" else epoch
    return _RATES[schedule["kind"]](schedule, base, n)


def momentum_at(recipe, epoch, iteration):
    """None where the recipe leaves the momentum as it is."""
    rise = recipe.get("momentum_schedule")
    if not rise:
        return None
    n = iteration if rise["per"] == "iteration" else epoch
    return rise["last"] - (rise["last"] - rise["first"]) * math.exp(-rise["speed"] * n)


def changes_per_iteration(recipe):
    rise = recipe.get("momentum_schedule") or {}
    return recipe["schedule"].get("per") == "iteration" or rise.get("per") == "iteration"


def _constant(schedule, base, n):
    return base


def _steps(schedule, base, n):
    return base * schedule["factor"] ** sum(1 for place in schedule["at"] if n >= place)


def _exponential(schedule, base, n):
    return max(base * schedule["factor"] ** n, schedule["floor"])


def _cosine(schedule, base, n):
    warmup, over, floor = schedule["warmup"], schedule["over"], schedule["floor"]
    if n < warmup:
        return base * (n + 1) / warmup
    share = min((n - warmup) / float(max(over - warmup, 1)), 1.0)
    return floor + (base - floor) * (1 + math.cos(math.pi * share)) / 2


_RATES = {"constant": _constant, "steps": _steps, "exponential": _exponential, "cosine": _cosine}
