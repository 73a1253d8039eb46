"""Judges every blob at the paths given. Exit 77 without the packages that it needs."""
import sys

sys.path[:0] = [__file__.rsplit("/", 2)[0]]

try:
    import witness
except ImportError:
    sys.exit(77)

for path in sys.argv[1:]:
    found = witness.blobs_at(path)
    if not found:
        sys.exit(f"witness: {path}: no blob")
    for directory in found:
        try:
            witness.judge(directory)
        except witness.Refused as error:
            sys.exit(f"witness: {error}")
