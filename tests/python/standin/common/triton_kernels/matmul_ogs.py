"""Stand-in."""
from triton_kernels.numerics import InFlexData


class FlexCtx:
    def __init__(self, lhs_data=InFlexData(), rhs_data=InFlexData()):
        self.lhs_data, self.rhs_data = lhs_data, rhs_data


class PrecisionConfig:
    def __init__(self, flex_ctx=FlexCtx(), weight_scale=None):
        self.weight_scale, self.flex_ctx = weight_scale, flex_ctx
