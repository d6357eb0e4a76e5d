"""From the many names of operations to a few classes, by the words that are in them."""

from __future__ import annotations

import re

import pandas as pd

# The first that matches decides. Names of all frameworks: aten::…, TensorFlow's kinds, HLO opcodes, Theano's.
_WORDS: tuple[tuple[str, str], ...] = (
    ("queue", r"queue|iteratorgetnext|dataloader|dequeue"),
    ("optimiser", r"optimizer\.|apply(adam|gradientdescent|momentum|rmsprop)|_foreach_|_fused_"),
    ("recurrent", r"lstm|gru|rnn|scan"),
    ("conv", r"conv(?!ert)|corr3?d?mm"),
    ("pool", r"pool|reduce-window|select-and-scatter"),
    ("norm", r"batch_?norm|layer_?norm|lrn|native_norm|local_response|fusedbatch"),
    ("matmul", r"matmul|gemm|addmm|::mm\b|::bmm\b|\bdot\b|dot_general|\bdot[-_.]|linear|einsum|ger\b|dot22|gemv"
               r"|xentropy_matmul"),
    ("random", r"random|bernoulli|dropout|threefry|rng|philox|multinomial"),
    ("layout", r"transpose|copy|permute|reorder|to_copy|contiguous|mkltonative|reshape|bitcast|dimshuffle|cast|convert"
               r"|::view|::t\b|as_strided|expand|concat|subtensor|slice|pad\b|gather|scatter|broadcast|::cat\b|\bpad"),
    ("reduce", r"sum|mean|reduce|argmax|topk|norm\b|\bmax\b|\bmin\b|softmax|xent|nll|logsumexp|crossentropy"
               r"|biasaddgrad"),
    ("elementwise", r"relu|add|mul|sub|div|exp|log|sqrt|tanh|sigmoid|gelu|threshold|elemwise|select|compare|where|pow"
                    r"|neg|maximum|minimum|clamp|square|rsqrt|fill|zero|ones|elu|fusion|bias"),
    ("memory", r"alloc|empty|resize|variable|readvariable|const|identity|parameter|get-tuple"),
    ("dispatch", r"execut|dispatch|callback|pjitfunction|launch|sync|wait"),
)  # fmt: skip
_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in _WORDS)


def class_of(types: pd.Series, phases: pd.Series) -> pd.Categorical:
    """A class for each operation; whatever the optimiser does is the optimiser's."""
    known = {kind: _class(str(kind)) for kind in types.cat.categories}
    found = types.map(known).astype(object).where(types.notna(), "other")
    return pd.Categorical(found.where(phases != "optimiser", "optimiser"))


def _class(kind: str) -> str:
    low = kind.lower()
    return next((name for name, pattern in _PATTERNS if pattern.search(low)), "other")
