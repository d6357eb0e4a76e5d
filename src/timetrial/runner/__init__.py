"""Order, isolation, limits, outcomes, resume."""
