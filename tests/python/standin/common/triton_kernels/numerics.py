"""Stand-in."""


class InFlexData:
    def __init__(self, scale=None):
        self.scale = scale
