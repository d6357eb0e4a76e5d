"""Datasets: what there is, reading it with its checksum, and preparing it once for every engine."""
