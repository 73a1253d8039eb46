"""Stand-in: layouts keep the shape and the options that they were made with.

Names and defaults are the real package's; vLLM leaves some options to their defaults.
"""


class Layout:
    def __init__(self, shape):
        self.initial_shape = list(shape)


class StridedLayout(Layout):
    pass


class HopperMXValueLayout(Layout):
    def __init__(self, shape, mx_axis, mma_version=3):
        super().__init__(shape)
        self.mx_axis, self.mma_version = mx_axis, mma_version


class HopperMXScaleLayout(Layout):
    def __init__(self, shape, mx_axis, num_warps=8):
        super().__init__(shape)
        self.mx_axis, self.num_warps = mx_axis, num_warps


class BlackwellMXValueLayout(Layout):
    pass


class BlackwellMXScaleLayout(Layout):
    pass


class CDNA4MXScaleLayout(Layout):
    pass
