"""Stand-in."""


class FlexCtx:
    def __init__(self, lhs_data=None, rhs_data=None):
        self.lhs_data, self.rhs_data = lhs_data, rhs_data


class PrecisionConfig:
    def __init__(self, weight_scale=None, flex_ctx=None):
        self.weight_scale, self.flex_ctx = weight_scale, flex_ctx
