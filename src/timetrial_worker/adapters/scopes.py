"""Names of layers and phases, as they stand in the scopes of TensorFlow and JAX: `layer.conv1.` and `phase.loss.`.

The dot at the end keeps a name apart from what a framework appends to make it unique (`layer.conv1._1`). Whatever is no
letter, digit, underscore or dot stands as its code in hexadecimal: a slash as `-2f-`. `timetrial.profiling` takes these
names apart again.
"""

import re

LOSS, OPTIMISER = "phase.loss.", "phase.optimiser."
HEAD = "phase.head."  # the last activation where the loss is computed from the logits: not among the nodes


def layer(name):
    return "layer.{}.".format(re.sub(r"[^A-Za-z0-9_.]", lambda found: "-{:x}-".format(ord(found.group())), name))
