"""How many threads read for one process."""
from __future__ import annotations

import contextlib
import os

MOST = 14  # more read no faster
SPARE_CPUS = 2  # for the process's other threads and the driver's; one of less than 8


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
    share = int(mine / sharing)
    return max(1, min(MOST, share - (SPARE_CPUS if share >= 8 else 1)))
