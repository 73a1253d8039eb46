"""What can go wrong with a blob, one class for each kind, all of them BlobError; with the program:
CommandError."""
from __future__ import annotations

from typing import Any, Optional, Tuple


class BlobError(Exception):
    """A fault (`what`) of a `file`, and its place there (`key`, a tensor or a JSON key)."""

    def __init__(self, file: str, key: str, what: str) -> None:
        self.file, self.key, self.what = file, key, what
        super().__init__(": ".join(part for part in (file, key, what) if part))

    def __reduce__(self) -> Tuple[Any, ...]:
        """For another process: by default an exception is made again from its text alone."""
        return type(self), (self.file, self.key, self.what), self.__dict__


class NotABlobError(BlobError):
    """There is no blob at the path, or its conversion did not finish."""


class RankError(BlobError):
    """The rank that was asked for is not there, or there are several and none was named."""


class NotFoundError(BlobError, LookupError):
    """A layer, its file, a tensor or an expert that is not in the blob."""


class FormatError(BlobError):
    """Malformed JSON, header, seek table or frame, or a format version that is not known."""


class SizeError(BlobError):
    """A file is shorter or longer than it should be."""


class ChecksumError(BlobError):
    """Bytes are not those that were written."""


class MismatchError(BlobError):
    """A layer file and the manifest, or a directory's name and the manifest, disagree."""


class ReadError(BlobError):
    """The operating system could not open or read a file."""


class DependencyError(BlobError, ImportError):
    """A package, or a type that only newer releases of it have, is missing."""


class ArgumentError(BlobError, ValueError, TypeError):
    """The caller's argument `key` makes no sense."""


class CommandError(Exception):
    """The program refused `command`. man 7 mxfp4-repack-json describes kind, message, file, key and
    hint; kind is empty if the program printed no document. exit_code is negative for a signal."""

    def __init__(self, command: str, message: str, exit_code: int, kind: str = "", file: Optional[str] = None,
                 key: Optional[str] = None, hint: Optional[str] = None) -> None:
        self.command, self.message, self.exit_code, self.kind = command, message, exit_code, kind
        self.file, self.key, self.hint = file, key, hint
        super().__init__(f"mxfp4-repack {command}: {message}" + (f" (hint: {hint})" if hint else ""))

    def __reduce__(self) -> Tuple[Any, ...]:
        """As BlobError's."""
        return (type(self), (self.command, self.message, self.exit_code, self.kind, self.file, self.key, self.hint),
                self.__dict__)
