"""Stand-in: the machine, as tests set it."""
from collections import namedtuple

Capability = namedtuple("Capability", "major minor")


class Platform:
    kind = "cuda"
    capability = Capability(9, 0)

    def is_cuda(self):
        return self.kind == "cuda"

    def is_rocm(self):
        return self.kind == "rocm"

    def is_xpu(self):
        return self.kind == "xpu"

    def is_cpu(self):
        return self.kind == "cpu"

    def get_device_capability(self, device_id=0):
        return self.capability


current_platform = Platform()
