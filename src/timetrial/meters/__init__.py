"""Meters: what measures, and what it measures on."""
