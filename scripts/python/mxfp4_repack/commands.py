"""convert(), explain() and verify() run the program, and return its JSON as typed objects.

    made = mxfp4_repack.convert("gpt-oss-20b/", "packed/", arch="sm90", tp_size=2, progress=print)
    print(made.backend, made.stored_bytes)

A keyword is the flag of the same name (man 1 mxfp4-repack): True gives the flag alone, a list or a
mapping gives it once for each item, None and False leave it out. If the program refuses, the call
raises CommandError.
"""
from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union

from mxfp4_repack.errors import ArgumentError, CommandError
from mxfp4_repack.program import find_program

PathLike = Union[str, "os.PathLike[str]"]
Flag = Union[None, bool, int, str, "os.PathLike[str]", Sequence[Union[int, str]], Mapping[str, Union[int, str]]]
Progress = Callable[[float], object]
Answer = TypeVar("Answer")

_SCHEMA = 1
_PERCENT = re.compile(r"mxfp4-repack: +(\d+) %  ")
_SECONDS_BETWEEN_CALLS = "0.2"
_NOT_FLAGS = ("json", "progress", "color", "quiet", "verbose", "batch")  # would change what is parsed


@dataclasses.dataclass(frozen=True)
class Conversion:
    """What convert() wrote; with dry_run, what it would write."""

    output: str
    complete: bool  # False after a shard, and in a dry run
    dry_run: bool
    already_complete: bool  # nothing was left to do; the members below are None then
    backend: Optional[str]
    layout: Optional[str]
    num_ranks: Optional[int]
    num_layer_files: Optional[int]  # of all ranks
    data_bytes: Optional[int]  # decoded
    stored_bytes: Optional[int]  # None in a dry run
    elapsed_seconds: Optional[float]
    warnings: Tuple[str, ...]
    document: Mapping[str, Any] = dataclasses.field(repr=False)  # man 7 mxfp4-repack-json


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Which backend the engine chooses, and why."""

    answer: str  # one sentence
    revision: str
    backend: Optional[str]  # None if the engine refuses the deployment
    layout: Optional[str]  # None if the program has none for the backend
    refusal: Optional[str]  # why convert() would refuse
    trace: Tuple[Tuple[str, Optional[str], bool, Optional[str]], ...]  # class, key, supported, reason
    warnings: Tuple[str, ...]
    document: Mapping[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Verification:
    """Whether a blob is whole and, with `against`, the exact repack of a checkpoint."""

    holds: bool
    findings: Tuple[str, ...]  # one for each difference
    num_ranks: int
    num_layer_files: int
    stored_bytes: int
    elapsed_seconds: float
    warnings: Tuple[str, ...]
    document: Mapping[str, Any] = dataclasses.field(repr=False)


def convert(checkpoint: PathLike, output: PathLike, *, progress: Optional[Progress] = None,
            **flags: Flag) -> Conversion:
    """Repacks the experts of `checkpoint` into the directory `output`.

    progress: called with the share that is done, 0.0 to 1.0, in this thread. If it raises, the
    conversion stops; `resume=True` continues it."""
    document = _run("convert", [os.fspath(checkpoint), "--output", os.fspath(output)], flags, progress)
    return _typed(Conversion, {"complete": False, "already_complete": False, **document})


def explain(checkpoint: Optional[PathLike] = None, **flags: Flag) -> Explanation:
    """The engine's choice for `checkpoint`, or without one for a gpt-oss model."""
    words = [] if checkpoint is None else [os.fspath(checkpoint)]
    document = _run("explain", words, flags, accepted=(0, 4))
    error = document.get("error")
    if error and "answer" not in document:  # refused before anything was found
        raise _error(document)
    return _typed(Explanation, {**document, "refusal": error["message"] if error else None,
                                "trace": tuple(tuple(step) for step in document.get("trace", ()))})


def verify(blob: PathLike, *, against: Optional[PathLike] = None, progress: Optional[Progress] = None,
           **flags: Flag) -> Verification:
    """Checks each byte of `blob`; a difference is a finding, not an error."""
    words = [os.fspath(blob)] + ([] if against is None else ["--against", os.fspath(against)])
    return _typed(Verification, _run("verify", words, flags, progress, accepted=(0, 1)))


def _typed(kind: Type[Answer], document: Mapping[str, Any]) -> Answer:
    values: Dict[str, Any] = {"document": document}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        value = document.get(field.name)
        values.setdefault(field.name, tuple(value) if isinstance(value, list) else value)
    return kind(**values)


def _words(flags: Mapping[str, Flag]) -> List[str]:
    """{"tp_size": 2, "force": True, "env": {"A": "1"}} as --tp-size 2 --force --env A=1."""
    words: List[str] = []
    for name, value in flags.items():
        if name in _NOT_FLAGS:
            raise ArgumentError("", name, "is no flag that can be given here")
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                words += [flag, f"{key}={item}"]
        elif isinstance(value, (list, tuple)):
            for item in value:
                words += [flag, str(item)]
        else:
            words += [flag, str(value)]
    return words


def _run(command: str, words: Sequence[str], flags: Mapping[str, Flag],
         progress: Optional[Progress] = None, accepted: Sequence[int] = (0,)) -> Dict[str, Any]:
    """The command's JSON document. Raises CommandError if its exit code is not among `accepted`."""
    argv = [find_program(), command, *words, *_words(flags), "--json",
            "--progress", "auto" if progress else "never"]
    environment = {**os.environ, "MXFP4_REPACK_PROGRESS_SECONDS": _SECONDS_BETWEEN_CALLS}
    with tempfile.TemporaryFile() as answer:
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=answer, stderr=subprocess.PIPE,
                              env=environment, encoding="utf-8", errors="replace") as process:
            try:
                said = _follow(process, progress)
            except BaseException:  # from the callback or Ctrl-C; SIGINT keeps what is done for resume
                process.send_signal(signal.SIGINT)
                raise
        answer.seek(0)
        text = answer.read()
    document = _parsed(text)
    if document is None:
        raise CommandError(command, said.strip() or f"ended with {process.returncode} and without an answer",
                           process.returncode)
    if process.returncode not in accepted:
        raise _error(document)
    if progress:
        progress(1.0)
    return document


def _follow(process: "subprocess.Popen[str]", progress: Optional[Progress]) -> str:
    """Reads standard error to its end; returns the lines that are no progress."""
    assert process.stderr is not None
    others: List[str] = []
    for line in process.stderr:
        found = _PERCENT.match(line)
        if found and progress:
            progress(min(int(found[1]), 100) / 100)
        elif not found:
            others.append(line)
    return "".join(others)


def _parsed(text: bytes) -> Optional[Dict[str, Any]]:
    try:
        document = json.loads(text)
    except ValueError:
        return None
    return document if isinstance(document, dict) and document.get("schema_version") == _SCHEMA else None


def _error(document: Mapping[str, Any]) -> CommandError:
    error = document["error"]
    return CommandError(str(document.get("command") or ""), error["message"], error["exit_code"], error["kind"],
                        error["file"], error["key"], error["hint"])
