"""The networks of the five studies and of today, by name; each is made only when it is asked for."""

from timetrial.zoo.catalogue import UnknownModel, entries, find, lookup, names
from timetrial.zoo.entry import Entry, Model, Option, OptionError

__all__ = ["Entry", "Model", "Option", "OptionError", "UnknownModel", "entries", "find", "lookup", "names"]
