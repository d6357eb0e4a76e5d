"""One module a format of traces: bytes to raw operations. What is wrong with a file is a TraceError that names it."""
