"""One module a format of traces: `read(folder, workload)` gives the operations and the steps."""
