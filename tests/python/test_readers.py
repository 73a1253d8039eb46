"""How many threads read for a rank."""
import unittest
from unittest import mock

from mxfp4_repack.readers import readers_of_rank


def readers(mine, whole, ranks):
    """Of a rank with `mine` CPUs, where process 1 has `whole`; None: the system does not tell."""
    def affinity(process):
        if process == 1 and whole is None:
            raise PermissionError("sched_getaffinity")
        return range(whole if process == 1 else mine)

    with mock.patch("os.sched_getaffinity", affinity):
        return readers_of_rank(ranks)


class Readers(unittest.TestCase):
    def test_alone(self):
        self.assertEqual([readers(cpus, cpus, 1) for cpus in (1, 2, 3, 4, 7, 8, 16, 17, 96)], [1, 1, 2, 3, 6, 6, 14, 14, 14])

    def test_ranks_that_share_all_cpus(self):
        self.assertEqual([readers(cpus, cpus, 2) for cpus in (2, 16, 32, 64)], [1, 6, 14, 14])
        self.assertEqual(readers(64, 64, 8), 6)

    def test_ranks_with_cpus_of_their_own(self):
        self.assertEqual(readers(8, 64, 8), 6)
        self.assertEqual(readers(32, 64, 2), 14)

    def test_ranks_that_share_half_of_the_cpus(self):
        self.assertEqual(readers(32, 64, 8), 6)

    def test_more_cpus_than_process_1(self):
        self.assertEqual(readers(16, 4, 2), 6)

    def test_process_1_may_not_be_asked(self):
        self.assertEqual([readers(16, None, ranks) for ranks in (1, 2)], [14, 6])

    def test_a_number_of_ranks_that_is_none(self):
        self.assertEqual(readers(16, 16, 0), 14)


if __name__ == "__main__":
    unittest.main()
