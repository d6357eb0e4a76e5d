"""Whether an engine, set as it was asked, takes tiny numbers for zero: ENGINE as-it-comes|true|false, prints the answer."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src"))

from timetrial_worker import adapters, tiny

WISHES = {"as-it-comes": None, "true": True, "false": False}

if __name__ == "__main__":
    settings = {"device": "cpu", "threads": 1, "flush": WISHES[sys.argv[2]]}
    adapter = adapters.load(sys.argv[1], settings)
    adapter.start()
    print(json.dumps(tiny.flushed(adapter)))
