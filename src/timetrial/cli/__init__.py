"""The command line: one module a command. Only the standard library and typer are imported before a command runs."""
