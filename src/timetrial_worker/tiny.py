"""Does an engine compute with numbers below float32's normal range, or take them for zero?

Not believed but tried: the engine itself halves some. They are written and read as bits, because where the engine has
set the processor to flush, NumPy in the same thread would see zeros too.
"""

import numpy as np

from timetrial_worker.adapters.base import Unsupported

VALUES = 2**18  # so many that every thread of a pool has its share
BITS = 2**19  # of 2**-130, about 7e-40; the least normal float32 is 2**-126


def flushed(adapter):
    """True: zeros; False: halves; "partly" where its threads differ; None: this engine cannot be asked."""
    halves = adapter.halved(np.full(VALUES, BITS, np.uint32).view(np.float32))
    if halves is None:
        return None
    kept = float(np.mean(np.ascontiguousarray(halves, np.float32).view(np.uint32) != 0))
    return {0.0: True, 1.0: False}.get(kept, "partly")


def readback(adapter):
    """What the engine was set to, in its own words and by trial. A wish that it did not follow is no other setting."""
    found, asked = adapter.readback(), adapter.settings.get("flush")
    found["flush"] = flushed(adapter)
    if asked is not None and found["flush"] is not asked:
        raise Unsupported(_cannot(adapter.name, asked, found["flush"]))
    return found


def _cannot(engine, asked, found):
    does = {True: "takes for zero all", False: "computes with", None: "does not tell what it does with"}
    return "{} {} numbers below 1.2e-38 and cannot be set to flush: {}; leave that out to run it as it comes".format(
        engine, does.get(found, "treats differently from thread to thread"), str(asked).lower()
    )
