"""Proposes changes to how a workload is run, applies each beside the defaults, and keeps what is proved."""
