"""Engines: which there are, the environments they live in, where each is found, and whether it works.

registry       what an engine is, and `parse("torch@2.9.1")`
environments   `add` and `remove` an environment made from pinned packages
locate         `locate` one engine and `installed` for all, without importing any
doctor         `check` an engine with a small real step in its own interpreter
"""
