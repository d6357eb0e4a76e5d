"""Solar irradiance from a grid of sensors: reading it, making it up plausibly, and composing samples from it."""
