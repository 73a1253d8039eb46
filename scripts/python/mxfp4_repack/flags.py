"""The program's flags as keywords, for editors and type checkers: each command's are a sum of the groups that
`--help` shows. A test compares them with the program's own.

True gives a flag alone; a list or a mapping gives a flag of REPEATED once for each item, another one its
values with commas between them.
"""
from __future__ import annotations

import os
from typing import Mapping, Sequence, TypedDict, Union

Path = Union[str, "os.PathLike[str]"]
Names = Union[str, Sequence[str]]
Numbers = Union[int, str, Sequence[int]]
Settings = Union[str, Sequence[str], Mapping[str, Union[str, int]]]
REPEATED = ("no_lib", "env", "knob")


class RevisionFlags(TypedDict, total=False):
    engine: str
    revision: str


class ServingFlags(RevisionFlags, total=False):
    """The serving machine and process, and what the engine was told."""

    arch: str
    platform: str
    target: Path
    moe_backend: str
    moe_runner_backend: str
    backend: str
    family: str
    selector: str
    quantization_config: Path
    libs: Names
    no_lib: Names
    activation: str
    routing_method: str
    env: Settings
    knob: Settings
    pad: str
    allow_known_defects: bool
    allow_unservable: bool
    tp_size: int
    dp_size: int
    pcp_size: int
    all2all_backend: str
    moe_a2a_backend: str
    enable_expert_parallel: bool
    enable_eplb: bool
    num_redundant_experts: int
    sequence_parallel: bool
    enable_lora: bool
    expert_placement: str


class TargetFlags(ServingFlags, total=False):
    rank: int


class InputFlags(TypedDict, total=False):
    """How a checkpoint is read."""

    style: str
    model_config: Path


class LayerFlags(TypedDict, total=False):
    layers: Numbers


class CheckpointFlags(ServingFlags, InputFlags, LayerFlags, total=False):
    """open_checkpoint()'s, which has `rank` as a keyword of its own."""


class RunFlags(TypedDict, total=False):
    threads: int
    memory: str


class ConvertFlags(TargetFlags, InputFlags, LayerFlags, RunFlags, total=False):
    compress: str
    level: int
    emit: str
    include_rest: bool
    shard: str
    dry_run: bool
    resume: bool
    check: bool
    read_back: bool
    force: bool


class ExplainFlags(TargetFlags, InputFlags, LayerFlags, total=False):
    against: str


class InspectFlags(TargetFlags, InputFlags, LayerFlags, total=False):
    serve: bool
    tensors: bool
    layer: int


class VerifyFlags(InputFlags, RunFlags, total=False):
    some_ranks: bool
    direct: bool


class FitsFlags(RevisionFlags, total=False):
    """What is not as the blob was made for."""

    target: Path
    arch: str
    platform: str
    moe_backend: str
    moe_runner_backend: str
    libs: Names
    env: Settings
    tp_size: int
    pcp_size: int
    dp_size: int
    enable_expert_parallel: bool
    all2all_backend: str
    moe_a2a_backend: str
    enable_eplb: bool
    num_redundant_experts: int
    sequence_parallel: bool


class DiffFlags(TypedDict, total=False):
    pass


class UnpackFlags(RunFlags, total=False):
    force: bool
    as_published: bool
    read_back: bool


class FinalizeFlags(RunFlags, total=False):
    read_back: bool


class ListFlags(RevisionFlags, total=False):
    pass
