"""The preprocessing of the published studies: small steps by name, in chains, fitted on the training samples only."""

from timetrial.data.steps import arrange, augment, gist, hog, images, radar, statistics, text, zca
from timetrial.data.steps.base import STEPS, Step, StepError
from timetrial.data.steps.chain import Chain, read_chain, read_step

__all__ = [
    "STEPS",
    "Chain",
    "Step",
    "StepError",
    "arrange",
    "augment",
    "gist",
    "hog",
    "images",
    "radar",
    "read_chain",
    "read_step",
    "statistics",
    "text",
    "zca",
]
