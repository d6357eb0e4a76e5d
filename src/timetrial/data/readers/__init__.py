"""One module a format: `read(folder, …)` finds its files below a folder and returns samples, or says what is wrong.

Readers never run what they read, and never take more from a file than its header and its size allow.
"""
