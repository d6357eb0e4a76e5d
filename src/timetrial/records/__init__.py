"""One file per run; query over many."""
