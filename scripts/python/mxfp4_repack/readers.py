"""How many threads read for one process, and how much pinned memory they share."""
from __future__ import annotations

import contextlib
import os

MOST = 14  # more read no faster
SPARE_CPUS = 2  # for the process's other threads and the driver's
RING_BYTES = 64 << 20  # a power of two: torch rounds pinned memory up to one
FEW_RANKS = 2  # their rings fit into the caches together


def readers_of_rank(ranks: int) -> int:
    """Threads, 1 to MOST: the rank's share of the CPUs that it may use, less SPARE_CPUS.

    ranks: processes of this host that load at once. Threads that wait for a copy keep their CPU, so
    two ranks on the same CPUs take each other's time. Process 1 has all CPUs of the host or
    container: a rank that was bound to half of them shares these with half of the ranks.
    """
    mine = whole = len(os.sched_getaffinity(0))
    with contextlib.suppress(OSError):  # the system may refuse to tell of another process
        whole = max(mine, len(os.sched_getaffinity(1)))
    sharing = max(1, ranks * mine / whole)
    return max(1, min(MOST, int(mine / sharing) - SPARE_CPUS))


def ring_of_rank(ranks: int, threads: int) -> int:
    """Bytes of the pinned ring, at most, for `threads` readers of each of `ranks` processes that load at once.

    Each reader gets 4 MiB of it. With more ranks than a few, 2 MiB: four GPUs' loads of a blob were 1.12 and
    1.18 times as fast so, on two hosts, since all rings fit into the caches.
    """
    return RING_BYTES if ranks <= FEW_RANKS else max(4, 2 * threads) << 20
