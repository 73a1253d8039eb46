"""Layouts of triton_kernels as objects, as from 3.8 on, compared with what a blob says of them."""
import dataclasses
import sys
import types
import unittest

from mxfp4_repack.plugin import build
from mxfp4_repack.plugin.facts import Mismatch


@dataclasses.dataclass(frozen=True)
class StridedLayout:
    major_dim: int = -1


@dataclasses.dataclass(frozen=True)
class CDNA4MXScaleLayout:
    pass


class OldStridedLayout:
    def __init__(self, shape):
        self.initial_shape = list(shape)


OldStridedLayout.__name__ = "StridedLayout"


@dataclasses.dataclass(frozen=True)
class FloatType:
    bitwidth_exponent: int
    bitwidth_mantissa: int
    is_signed: bool


@dataclasses.dataclass(frozen=True)
class IntegerType:
    bitwidth: int
    is_signed: bool


FP4, UINT8 = FloatType(2, 1, True), IntegerType(8, False)


def wrapped(shape, dtype):
    """A tensor of `shape` logical elements, as the converter hands it to convert_layout."""
    data = types.SimpleNamespace(shape=(shape[0], shape[1] // (2 if dtype is FP4 else 1), shape[2]))
    return types.SimpleNamespace(storage=types.SimpleNamespace(data=data), dtype=dtype, shape=shape, shape_max=shape)


def storage(layout, kwargs, shape, dtype):
    return {"layout": layout, "layout_kwargs": kwargs, "logical_shape": shape, "logical_dtype": dtype}


class Objects(unittest.TestCase):
    def setUp(self):
        facts = {"w13_weight": storage("StridedLayout", {"major_dim": 1}, [2, 64, 128], "fp4_e2m1"),
                 "w13_weight_scale": storage("CDNA4MXScaleLayout", {}, [2, 2, 128], "uint8"),
                 "w2_weight": storage("StridedLayout", {"major_dim": 1}, [2, 64, 64], "fp4_e2m1"),
                 "w2_weight_scale": storage("StridedLayout", {"major_dim": 2}, [2, 2, 64], "uint8")}
        layer = types.SimpleNamespace(info=lambda name: types.SimpleNamespace(storage=facts[name]))
        self.bytes = {name: object() for name in facts}
        self.convert = build.StandIn(layer, self.bytes)
        module = types.ModuleType("triton_kernels.tensor")
        module.Storage = lambda data, layout: types.SimpleNamespace(data=data, layout=layout)
        module.Tensor = lambda storage, **rest: types.SimpleNamespace(storage=storage, **rest)
        for name in ("triton_kernels", "triton_kernels.tensor"):
            self.addCleanup(self.put_back, name, sys.modules.get(name))
        sys.modules["triton_kernels"] = types.ModuleType("triton_kernels")
        sys.modules["triton_kernels"].tensor = sys.modules["triton_kernels.tensor"] = module

    @staticmethod
    def put_back(name, module):
        del sys.modules[name]
        if module is not None:
            sys.modules[name] = module

    def test_blob_bytes_in_the_layouts_that_vllm_asks_for(self):
        asked = [(wrapped([2, 64, 128], FP4), StridedLayout(-2)), (wrapped([2, 2, 128], UINT8), CDNA4MXScaleLayout()),
                 (wrapped([2, 64, 64], FP4), StridedLayout(-2)), (wrapped([2, 2, 64], UINT8), StridedLayout())]
        for name, (tensor, layout) in zip(build.WRAPPED, asked):
            made = self.convert(tensor, layout)
            self.assertIs(made.storage.data, self.bytes[name])
            self.assertIs(made.storage.layout, layout)
            self.assertEqual((made.dtype, made.shape), (tensor.dtype, tensor.shape))
        self.convert.finished()

    def test_types_of_torch_are_named_as_before(self):
        class Dtype:
            is_signed = False

            def __str__(self):
                return "torch.uint8"

        self.assertEqual([build._logical_dtype(dtype) for dtype in (Dtype(), UINT8, IntegerType(32, True), FP4)],
                         ["uint8", "uint8", "int32", "fp4_e2m1"])

    def test_what_differs(self):
        for tensor, layout, words in (
                (wrapped([2, 64, 128], FP4), StridedLayout(), "layout options of w13_weight"),
                (wrapped([2, 64, 128], FP4), CDNA4MXScaleLayout(), "layout class of w13_weight"),
                (wrapped([2, 32, 128], FP4), StridedLayout(-2), "logical shape of w13_weight"),
                (wrapped([2, 64, 128], IntegerType(8, True)), StridedLayout(-2), "logical type of w13_weight"),
                (wrapped([2, 64, 128], FP4), OldStridedLayout, "shape before the layout of w13_weight")):
            self.setUp()
            with self.assertRaisesRegex(Mismatch, words):
                self.convert(tensor, layout)


if __name__ == "__main__":
    unittest.main()
