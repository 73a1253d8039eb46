#!/usr/bin/env python3
"""Multiply with a blob packed for TRITON on sm90, as the reader of scripts/python puts it on the GPU, through the
installed triton_kernels, and compare with the loaded tensors.

    triton_matmul_check.py --loaded LOADED --blob PACKED [--triton-kernels DIR]

PACKED and LOADED are blobs that `mxfp4-repack convert` wrote from one checkpoint, LOADED with --emit loaded; the first
layer of each is used. Needs an sm90 GPU, torch and triton_kernels v3.6.0: --triton-kernels names the folder that holds
the package, if it is not on the path.

For each projection:
  one-hot   identity rows through matmul_ogs read every weight of every expert; each must equal the dequantized element;
  random    bf16 rows, uneven numbers of them for the experts, one expert without any, with bias, in f32 and bf16 out;
  control   the same one-hot read of a copy with one byte changed must differ, or the check checks nothing.
Then both products with the fused SwiGLU between them. Prints one line for each; exits 1 if any failed.
Scale bytes near 254 overflow f32 in the random product; only the one-hot lines mean something then.
"""
import argparse
import sys
from pathlib import Path

F32_LIMIT = 1e-5  # of the largest reference magnitude
BF16_LIMIT = 1e-2
ALPHA, LIMIT = 1.702, 7.0  # gpt-oss SwiGLU
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loaded", required=True)
    parser.add_argument("--blob", required=True)
    parser.add_argument("--triton-kernels", metavar="DIR")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


arguments = parse_arguments()
if arguments.triton_kernels:
    sys.path.insert(0, arguments.triton_kernels)
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "python"))

import mxfp4_repack
import torch
from triton_kernels import matmul_ogs as ogs
from triton_kernels import tensor as tk
from triton_kernels.matmul_ogs_details.opt_flags import update_opt_flags_constraints
from triton_kernels.numerics import InFlexData
from triton_kernels.swiglu import swiglu_fn
from triton_kernels.tensor_details import layout as layouts


def dequantize(weight, scale):
    """f32 [N, K] of one expert's loaded codes [N, K/2] and E8M0 bytes [N, K/32]."""
    table = torch.tensor(E2M1 + [-value for value in E2M1], device=weight.device)
    pairs = torch.stack([weight & 15, weight >> 4], dim=-1)
    values = table[pairs.long()].flatten(-2)
    return torch.ldexp(values, (scale.int() - 127).repeat_interleave(32, dim=-1))


class Projection:
    """One of w13 and w2: the packed bytes as triton_kernels tensors, and the loaded tensors to judge them by."""

    def __init__(self, name, loaded, packed):
        """`packed`: an open mxfp4_repack.Layer; `loaded`: tensors by name."""
        self.name = name
        self.codes = loaded[f"{name}_weight"].cuda()
        self.scales = loaded[f"{name}_weight_scale"].cuda()
        self.experts, self.rows, self.columns = self.codes.shape[0], self.codes.shape[1], 2 * self.codes.shape[2]
        bias = loaded.get(f"{name}_bias")
        self.bias = None if bias is None else bias.cuda().float()
        self.tensors = packed.to_device("cuda", [tensor for tensor in packed.tensors if tensor.startswith(name)])
        self.packed_bias = self.tensors.get(f"{name}_bias")
        self.facts = {tensor: packed.info(tensor).storage for tensor in self.tensors}

    def wrap(self, name, dtype, change=None):
        """The reader's tensor wrapped as triton_kernels wants it; `change` flips one byte of a copy of it."""
        facts, view = self.facts[name], self.tensors[name]
        if change is not None:
            flat = torch.as_strided(view, (view.numel(),), (1,)).clone()
            flat[change] ^= 0xFF
            view = torch.as_strided(flat, view.shape, view.stride())
        layout = getattr(layouts, facts["layout"])(facts["layout_init_shape"], **facts["layout_kwargs"])
        return tk.Tensor(tk.Storage(view, layout), dtype=dtype, shape=list(facts["logical_shape"]))

    def multiply(self, x, counts, out_dtype, bias=None, activation=None, change=None):
        """Rows of x, grouped by expert, through matmul_ogs; the output buffer is poisoned first."""
        weight = self.wrap(f"{self.name}_weight", tk.FP4, change)
        scale = self.wrap(f"{self.name}_weight_scale", torch.uint8)
        histogram = torch.tensor(counts, dtype=torch.int32, device="cuda")
        ragged = tk.make_ragged_tensor_metadata(histogram, x.shape[0])
        routing = ogs.RoutingData(None, histogram, self.experts, 1, ragged)
        precision = ogs.PrecisionConfig(weight_scale=scale, flex_ctx=ogs.FlexCtx(rhs_data=InFlexData()), out_dtype=out_dtype)
        width = self.rows // (1 if activation is None else activation.specs.reduction_n)
        y = torch.full((x.shape[0], width), float("nan"), dtype=out_dtype, device="cuda")
        return ogs.matmul_ogs(x, weight, bias, routing, precision_config=precision, fused_activation=activation, y=y)

    def expert(self, index):
        return dequantize(self.codes[index], self.scales[index])


def one_hot_mismatches(projection, change=None, only_first=False):
    columns, chunk, wrong = projection.columns, 1024, 0
    for begin in range(0, columns, chunk):
        count = min(chunk, columns - begin)
        rows = torch.zeros(count, columns, dtype=torch.bfloat16, device="cuda")
        rows[torch.arange(count), torch.arange(begin, begin + count)] = 1
        y = projection.multiply(rows.repeat(projection.experts, 1), [count] * projection.experts, torch.float32, change=change)
        for index in range(projection.experts):
            want = projection.expert(index)[:, begin:begin + count].T
            wrong += (y[index * count:(index + 1) * count] != want).sum().item()  # NaN differs from everything
        if only_first:
            break
    return wrong


def reference(projection, x, counts):
    parts, begin = [], 0
    for index, count in enumerate(counts):
        part = x[begin:begin + count].double() @ projection.expert(index).double().T
        parts.append(part if projection.bias is None else part + projection.bias[index].double())
        begin += count
    return torch.cat(parts)


def relative_error(got, want):
    """Largest difference over the largest magnitude; NaN stays NaN, which passes no comparison."""
    return ((got.double() - want).abs().max() / want.abs().max()).item()


def swiglu(x):
    gate, up = x[:, 0::2].clamp(max=LIMIT), x[:, 1::2].clamp(-LIMIT, LIMIT)
    return gate * torch.sigmoid(ALPHA * gate) * (up + 1)


failures = 0


def report(what, good, text):
    global failures
    failures += not good
    print(f"{'ok  ' if good else 'FAIL'} {what}: {text}", flush=True)


def main():
    if torch.cuda.get_device_capability() != (9, 0):
        sys.exit("needs an sm90 GPU")
    torch.manual_seed(arguments.seed)
    with mxfp4_repack.open_blob(arguments.loaded) as blob, blob.layer(blob.layers[0]) as layer:
        loaded = {name: layer.torch(name) for name in layer.tensors}
    update_opt_flags_constraints({"split_k": 1})
    with mxfp4_repack.open_blob(arguments.blob, check="checksums") as blob, blob.layer(blob.layers[0]) as packed:
        w13, w2 = (Projection(name, loaded, packed) for name in ("w13", "w2"))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, E={w13.experts} H={w13.columns} I={w2.columns}")

    counts = [1 + (37 * (index + 1)) % 150 for index in range(w13.experts)]
    if w13.experts > 2:
        counts[1] = 0
    total = sum(counts)
    for projection in (w13, w2):
        name, elements = projection.name, projection.experts * projection.rows * projection.columns
        if projection.bias is not None:
            report(f"{name} bias", torch.equal(projection.bias, projection.packed_bias), "f32 equals widened BF16")
        wrong = one_hot_mismatches(projection)
        report(f"{name} one-hot", wrong == 0, f"{wrong} of {elements} elements differ")
        if wrong == 0:
            changed = one_hot_mismatches(projection, change=0, only_first=True)
            report(f"{name} control", changed > 0, f"{changed} elements differ after one byte was changed")
        x = torch.randn(total, projection.columns, device="cuda").bfloat16()
        want = reference(projection, x, counts)
        for dtype, limit in ((torch.float32, F32_LIMIT), (torch.bfloat16, BF16_LIMIT)):
            error = relative_error(projection.multiply(x, counts, dtype, projection.packed_bias), want)
            report(f"{name} random, {dtype} out", error < limit, f"error {error:.2e} of the largest magnitude")

    # activations small enough that the clamp does not flatten everything
    x = torch.randn(total, w13.columns, device="cuda")
    x = (x * (4 / reference(w13, x.bfloat16(), counts).std().item())).bfloat16()
    activation = ogs.FusedActivation(ogs.FnSpecs("swiglu", swiglu_fn, ("alpha", "limit"), reduction_n=2), (ALPHA, LIMIT))
    middle = w13.multiply(x, counts, torch.bfloat16, w13.packed_bias, activation)
    want = swiglu(reference(w13, x, counts))
    error = relative_error(middle, want)
    report("w13 with fused swiglu", error < BF16_LIMIT, f"error {error:.2e}")
    error = relative_error(w2.multiply(middle, counts, torch.bfloat16, w2.packed_bias), reference(w2, want, counts))
    report("both products", error < BF16_LIMIT, f"error {error:.2e}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
