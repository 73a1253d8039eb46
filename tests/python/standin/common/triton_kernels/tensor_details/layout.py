"""Stand-in: layouts keep the shape and the options that they were made with."""


class Layout:
    def __init__(self, shape, **options):
        self.initial_shape, self.options = list(shape), options


class StridedLayout(Layout):
    pass


class HopperMXValueLayout(Layout):
    pass


class HopperMXScaleLayout(Layout):
    pass


class BlackwellMXValueLayout(Layout):
    pass


class BlackwellMXScaleLayout(Layout):
    pass


class CDNA4MXScaleLayout(Layout):
    pass
