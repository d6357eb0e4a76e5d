"""The part of Timetrial that runs inside an engine's own interpreter: Python 3.6 syntax, standard library and NumPy."""
