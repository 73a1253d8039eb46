"""convert(), explain(), inspect(), verify(), fits(), diff(), unpack(), finalize() and list() run the program, and
return its JSON as typed objects.

    made = mxfp4_repack.convert("gpt-oss-20b/", "packed/", arch="sm90", tp_size=2, progress=print)
    print(made.backend, made.stored_bytes)

A keyword is the flag of the same name (man 1 mxfp4-repack; mxfp4_repack.flags has their types): True gives
the flag alone, a list or a mapping gives it once for each item (layers and libs: once, with commas), None and
False leave it out. If the program refuses, the call raises CommandError; an argument that no program could be
given is an ArgumentError, and a program that cannot be run a DependencyError.
"""
from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import subprocess
import tempfile
from typing import (
    TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union,
    get_type_hints)

from mxfp4_repack import flags as known
from mxfp4_repack.arguments import path_text, word
from mxfp4_repack.errors import ArgumentError, CommandError, DependencyError
from mxfp4_repack.program import find_program

if TYPE_CHECKING:
    from typing_extensions import Unpack

PathLike = Union[str, "os.PathLike[str]"]
Progress = Callable[[float], object]
Answer = TypeVar("Answer")

_SCHEMA = 1
_PERCENT = re.compile(r"mxfp4-repack: +(\d+) %  ")
_SECONDS_BETWEEN_CALLS = "0.2"
_FLAG = re.compile("[a-z][a-z0-9_-]*")
_NOT_FLAGS = ("json", "progress", "color", "quiet", "verbose", "batch", "help")  # would change what is parsed


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


@dataclasses.dataclass(frozen=True)
class Inspection:
    """What is in a checkpoint or a blob."""

    kind: str  # safetensors, hdf5, raw; blob
    ranks: Tuple[Mapping[str, Any], ...]  # of a checkpoint: one
    warnings: Tuple[str, ...]
    document: Mapping[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Difference:
    """Whether two blobs have the same layout and bytes."""

    same: bool
    difference: Optional[Mapping[str, Any]]  # the first: place, what, first, second
    notes: Tuple[str, ...]  # differences without effect on the bytes
    warnings: Tuple[str, ...]
    document: Mapping[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Restoration:
    """What unpack() wrote: the loaded layout, or the experts as the checkpoint has them."""

    output: str
    as_published: bool
    num_ranks: int
    num_layer_files: int
    data_bytes: int
    elapsed_seconds: float
    warnings: Tuple[str, ...]
    document: Mapping[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Completion:
    """Whether the shards in a directory are now one blob."""

    output: str
    complete: bool
    findings: Tuple[str, ...]  # why not
    num_ranks: Optional[int]
    num_layer_files: Optional[int]
    stored_bytes: Optional[int]
    elapsed_seconds: Optional[float]
    warnings: Tuple[str, ...]
    document: Mapping[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True)
class Fit:
    """Whether a blob fits a release and a machine."""

    fits: Optional[bool]  # None: not known, the plug-in proves it when the engine starts
    revision: str
    differs: Tuple[str, ...]  # facts that are not as the blob was made for
    reasons: Tuple[str, ...]  # why it does not fit, or why that is not known
    next: Optional[str]  # what to do about a blob that does not fit
    warnings: Tuple[str, ...]
    document: Mapping[str, Any] = dataclasses.field(repr=False)


def convert(checkpoint: PathLike, output: PathLike, *, progress: Optional[Progress] = None,
            **flags: "Unpack[known.ConvertFlags]") -> Conversion:
    """Repacks the experts of `checkpoint` into the directory `output`.

    progress: called with the share that is done, 0.0 to 1.0, in this thread. If it raises, the
    conversion stops; `resume=True` continues it."""
    to = _path(output, "output")
    document = _run("convert", [_path(checkpoint, "checkpoint"), "--output=" + to], flags, progress)
    return _typed(Conversion, {"complete": False, "already_complete": False, **document}, output=to)


def explain(checkpoint: Optional[PathLike] = None, **flags: "Unpack[known.ExplainFlags]") -> Explanation:
    """The engine's choice for `checkpoint`, or without one for a gpt-oss model."""
    words = [] if checkpoint is None else [_path(checkpoint, "checkpoint")]
    document = _run("explain", words, flags, accepted=(0, 4))
    error = document.get("error")
    if error and "answer" not in document:  # refused before anything was found
        raise _error(document)
    return _typed(Explanation, {**document, "refusal": error["message"] if error else None,
                                "trace": tuple(tuple(step) for step in document.get("trace", ()))})


def verify(blob: PathLike, *, against: Optional[PathLike] = None, progress: Optional[Progress] = None,
           **flags: "Unpack[known.VerifyFlags]") -> Verification:
    """Checks each byte of `blob`; a difference is a finding, not an error."""
    words = [_path(blob, "blob")] + ([] if against is None else ["--against=" + _path(against, "against")])
    return _typed(Verification, _run("verify", words, flags, progress, accepted=(0, 1)))


def inspect(path: PathLike, **flags: "Unpack[known.InspectFlags]") -> Inspection:
    """What is in the checkpoint or blob at `path`; with flags of a target, what that would get."""
    return _typed(Inspection, _run("inspect", [_path(path, "path")], flags, accepted=(0, 1)))


def diff(first: PathLike, second: PathLike, **flags: "Unpack[known.DiffFlags]") -> Difference:
    """Compares two blobs by their manifests; a difference is a finding, not an error."""
    return _typed(Difference, _run("diff", [_path(first, "first"), _path(second, "second")], flags, accepted=(0, 1)))


def unpack(blob: PathLike, output: PathLike, *, progress: Optional[Progress] = None,
           **flags: "Unpack[known.UnpackFlags]") -> Restoration:
    """Writes the loaded layout of `blob` into the directory `output`; as_published=True: the experts as the
    checkpoint has them."""
    to = _path(output, "output")
    return _typed(Restoration, _run("unpack", [_path(blob, "blob"), "--output=" + to], flags, progress), output=to)


def finalize(output: PathLike, *, progress: Optional[Progress] = None,
             **flags: "Unpack[known.FinalizeFlags]") -> Completion:
    """Completes the blob in `output` that convert(shard=...) processes wrote; a damaged file is a finding."""
    to = _path(output, "output")
    return _typed(Completion, _run("finalize", [to], flags, progress, accepted=(0, 1)), output=to)


def fits(blob: PathLike, **flags: "Unpack[known.FitsFlags]") -> Fit:
    """Whether an engine of a release, on a machine, would read `blob` as it is. Facts that no flag gives are as
    the blob was made for."""
    return _typed(Fit, _run("fits", [_path(blob, "blob")], flags, accepted=(0, 1, 7)))


def list_table(what: str, name: Optional[str] = None,
               **flags: "Unpack[known.ListFlags]") -> Tuple[Mapping[str, Any], ...]:
    """mxfp4_repack.list(): the rows of a table that the program decides by: backends, knobs, layouts, libraries,
    machines, revisions, styles, variables. name: of one layout, or of a family of them."""
    words = {"what": what} if name is None else {"what": what, "name": name}
    for key, text in words.items():
        if not isinstance(text, str) or text.startswith("-"):
            raise ArgumentError("", key, f"{text!r}, expected a name")
    document = _run("list", [word(text, key) for key, text in words.items()], flags)
    return tuple(document[what])


def _typed(kind: Type[Answer], document: Mapping[str, Any], **known_here: str) -> Answer:
    """known_here: instead of the document's; JSON has no place for a path's bytes that are no text."""
    values: Dict[str, Any] = {"document": document, **known_here}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        value = document.get(field.name)
        values.setdefault(field.name, tuple(value) if isinstance(value, list) else value)
    return kind(**values)


def _path(path: PathLike, key: str) -> str:
    """A path as an argument that is not read as a flag, whatever it begins with."""
    text = path_text(path, key)
    return "./" + text if text.startswith("-") else text


def _group(name: str) -> Any:
    return getattr(known, name.capitalize() + "Flags")


def _words(command: str, flags: Mapping[str, Any]) -> List[str]:
    """{"tp_size": 2, "force": True, "env": {"A": "1"}} as --tp-size=2 --force --env=A=1: a value that begins
    with a dash is a value."""
    kinds = get_type_hints(_group(command))
    words: List[str] = []
    for name, value in flags.items():
        if name in _NOT_FLAGS or not _FLAG.fullmatch(name):
            raise ArgumentError("", name, "is not a flag that can be given here")
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            if kinds.get(name, bool) is not bool:  # it would take the next word for its value
                raise ArgumentError("", name, "needs a value, not True")
            words.append(flag)
            continue
        items = _items(name, value)
        words += [f"{flag}={item}" for item in (items if name in known.REPEATED else [",".join(items)])]
    return words


def _items(name: str, value: Any) -> List[str]:
    """What a flag is given, as texts: the items of a collection, or the value itself."""
    if isinstance(value, Mapping):
        return [f"{_item(name, key)}={_item(name, int(item) if isinstance(item, bool) else item)}"
                for key, item in value.items()]
    try:
        items = [value] if isinstance(value, (str, bytes, bytearray, os.PathLike)) else list(value)
    except TypeError:  # a number, say
        items = [value]
    return [_item(name, item) for item in items]


def _item(name: str, value: Any) -> str:
    if value is None:
        raise ArgumentError("", name, "None, expected a value")
    if isinstance(value, (bytes, os.PathLike)):
        value = os.fsdecode(value)
    return word(str.__str__(value) if isinstance(value, str) else f"{value}", name)


def _run(command: str, words: Sequence[str], flags: Mapping[str, Any],
         progress: Optional[Progress] = None, accepted: Sequence[int] = (0,)) -> Dict[str, Any]:
    """The command's JSON document. Raises CommandError if its exit code is not among `accepted`."""
    if progress is not None and not callable(progress):
        raise ArgumentError("", "progress", f"{progress!r}, expected a function")
    argv = [find_program(), command, *words, *_words(command, flags), "--json",
            "--progress", "auto" if progress else "never"]
    environment = {**os.environ, "MXFP4_REPACK_PROGRESS_SECONDS": _SECONDS_BETWEEN_CALLS}
    with tempfile.TemporaryFile() as answer:
        try:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=answer, stderr=subprocess.PIPE,
                                       env=environment, encoding="utf-8", errors="replace")
        except OSError as error:
            raise DependencyError(argv[0], "", f"cannot be run: {error.strerror or error}") from None
        with process:
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
