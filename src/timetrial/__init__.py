"""Timetrial: a laboratory for neural-network training and inference."""

__version__ = "0.1.0"
