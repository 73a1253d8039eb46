"""convert(), explain(), inspect(), verify(), fits(), diff(), unpack(), finalize() and list() run the program, and
return its JSON as an Answer.

    made = mxfp4_repack.convert("gpt-oss-20b/", "packed/", arch="sm90", tp_size=2, progress=print)
    print(made.backend, made.stored_bytes)

A keyword is the flag of the same name, and help(mxfp4_repack.convert) lists them: True gives
the flag alone, a list or a mapping gives it once for each item (layers and libs: once, with commas), None and
False leave it out. If the program refuses, the call raises CommandError; an argument that no program could be
given is an ArgumentError, and a program that cannot be run a DependencyError.
"""
from __future__ import annotations

import inspect as inspect_module
import json
import os
import re
import signal
import subprocess
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from mxfp4_repack.arguments import path_text, word
from mxfp4_repack.errors import ArgumentError, CommandError, DependencyError
from mxfp4_repack.program import find_program

PathLike = Union[str, "os.PathLike[str]"]
Progress = Callable[[float], object]

_SCHEMA = 1
_PERCENT = re.compile(r"mxfp4-repack: +(\d+) %  ")
_SECONDS_BETWEEN_CALLS = "0.2"
_FLAG = re.compile("[a-z][a-z0-9_-]*")
_NOT_FLAGS = ("json", "progress", "color", "quiet", "verbose", "batch", "help")  # would change what is parsed
_NO_KEYWORDS = ("Examples", "Arguments", "Output", "Options")  # parts of --help-all
_REPEATED = ("no_lib", "env", "knob")  # once for each item; others take commas


class Answer(Mapping[str, Any]):
    """What a command said: the members of its JSON (man 7 mxfp4-repack-json), as items and as attributes. Arrays
    are tuples."""

    def __init__(self, document: Mapping[str, Any], **known_here: Any):
        """known_here: instead of the document's; JSON has no place for a path's bytes that are no text."""
        self.document = document
        self._members = {name: tuple(value) if isinstance(value, list) else value
                         for name, value in {**document, **known_here}.items()}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_members"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __getitem__(self, name: str) -> Any:
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return f"Answer({self._members!r})"


def convert(checkpoint: PathLike, output: PathLike, *, progress: Optional[Progress] = None, **flags: Any) -> Answer:
    """Repacks the experts of `checkpoint` into the directory `output`.

    progress: called with the share that is done, 0.0 to 1.0, in this thread. If it raises, the
    conversion stops; `resume=True` continues it."""
    to = _path(output, "output")
    document = _run("convert", [_path(checkpoint, "checkpoint"), "--output=" + to], flags, progress)
    return Answer({"complete": False, "already_complete": False, **document}, output=to)


def explain(checkpoint: Optional[PathLike] = None, **flags: Any) -> Answer:
    """The engine's choice for `checkpoint`, or without one for a gpt-oss model."""
    words = [] if checkpoint is None else [_path(checkpoint, "checkpoint")]
    document = _run("explain", words, flags, accepted=(0, 4))
    error = document.get("error")
    if error and "answer" not in document:  # refused before anything was found
        raise _error(document)
    return Answer({"backend": None, "layout": None, "trace": [], **document}, refusal=error["message"] if error else None)


def verify(blob: PathLike, *, against: Optional[PathLike] = None, progress: Optional[Progress] = None,
           **flags: Any) -> Answer:
    """Checks each byte of `blob`; a difference is a finding, not an error."""
    words = [_path(blob, "blob")] + ([] if against is None else ["--against=" + _path(against, "against")])
    return Answer(_run("verify", words, flags, progress, accepted=(0, 1)))


def inspect(path: PathLike, **flags: Any) -> Answer:
    """What is in the checkpoint or blob at `path`; with flags of a target, what that would get."""
    return Answer(_run("inspect", [_path(path, "path")], flags, accepted=(0, 1)))


def diff(first: PathLike, second: PathLike, **flags: Any) -> Answer:
    """Compares two blobs by their manifests; a difference is a finding, not an error."""
    return Answer(_run("diff", [_path(first, "first"), _path(second, "second")], flags, accepted=(0, 1)))


def unpack(blob: PathLike, output: PathLike, *, progress: Optional[Progress] = None, **flags: Any) -> Answer:
    """Writes the loaded layout of `blob` into the directory `output`; as_published=True: the experts as the
    checkpoint has them."""
    to = _path(output, "output")
    return Answer(_run("unpack", [_path(blob, "blob"), "--output=" + to], flags, progress), output=to)


def finalize(output: PathLike, *, progress: Optional[Progress] = None, **flags: Any) -> Answer:
    """Completes the blob in `output` that convert(shard=...) processes wrote; a damaged file is a finding."""
    to = _path(output, "output")
    return Answer(_run("finalize", [to], flags, progress, accepted=(0, 1)), output=to)


def fits(blob: PathLike, **flags: Any) -> Answer:
    """Whether an engine of a release, on a machine, would read `blob` as it is. Facts that no flag gives are as
    the blob was made for."""
    return Answer(_run("fits", [_path(blob, "blob")], flags, accepted=(0, 1, 7)))


def list_table(what: str, name: Optional[str] = None, **flags: Any) -> Tuple[Mapping[str, Any], ...]:
    """mxfp4_repack.list(): the rows of a table that the program decides by: backends, knobs, layouts, libraries,
    machines, revisions, styles, variables. name: of one layout, or of a family of them."""
    words = {"what": what} if name is None else {"what": what, "name": name}
    for key, text in words.items():
        if not isinstance(text, str) or text.startswith("-"):
            raise ArgumentError("", key, f"{text!r}, expected a name")
    document = _run("list", [word(text, key) for key, text in words.items()], flags)
    return tuple(document[what])


def add_flags(function: Callable[..., Any], command: str) -> None:
    """Adds the flags of `command` to the function's documentation, in the words of the program's own help. Without a
    program nothing is added; a call says what is missing."""
    try:
        said = subprocess.run([find_program(), command, "--help-all"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, encoding="utf-8", errors="replace").stdout
    except (OSError, DependencyError):
        return
    parts = [part.strip("\n") for part in said.split("\n\n") if re.match(r"\w[^\n]*:\n +-", part)]
    parts = [part for part in parts if not part.startswith(_NO_KEYWORDS)]
    if parts:
        text = "\n\n".join(["Flags; tp_size=2 is --tp-size 2, force=True is --force:", *parts])
        function.__doc__ = f"{inspect_module.cleandoc(function.__doc__ or '')}\n\n{text}"


def _path(path: PathLike, key: str) -> str:
    """A path as an argument that is not read as a flag, whatever it begins with."""
    text = path_text(path, key)
    return "./" + text if text.startswith("-") else text


def _words(flags: Mapping[str, Any]) -> List[str]:
    """{"tp_size": 2, "force": True, "env": {"A": "1"}} as --tp-size=2 --force --env=A=1: a value that begins
    with a dash is a value."""
    words: List[str] = []
    for name, value in flags.items():
        if name in _NOT_FLAGS or not _FLAG.fullmatch(name):
            raise ArgumentError("", name, "is not a flag that can be given here")
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        # "=true": a flag that wants a value would take the next word for it.
        items = ["true"] if value is True else _items(name, value)
        words += [f"{flag}={item}" for item in (items if name in _REPEATED else [",".join(items)])]
    return words


def _items(name: str, value: Any) -> List[str]:
    """What a flag is given, as texts: the items of a collection, or the value itself."""
    if isinstance(value, Mapping):
        sign = "==" if name == "libs" else "="
        return [f"{_item(name, key)}{sign}{_item(name, int(item) if isinstance(item, bool) else item)}"
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
    argv = [find_program(), command, *words, *_words(flags), "--json",
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
