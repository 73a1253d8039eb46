#!/usr/bin/env python3
"""The vLLM plug-in with the real triton_kernels: what it builds equals what a conversion builds.

    vllm_hook_check.py --triton-kernels DIR [--device cuda]

DIR holds the package triton_kernels (v3.6.0). BIN names the program, or MXFP4_TEST_BLOBS a folder
of blobs that an earlier run of tests/python/test_vllm_hook_*.py kept. Needs torch; vLLM's modules
are the stand-ins of tests/python. For the Triton goldens: an unpatched conversion of the right raw
experts, a patched one of wrong ones, both compared field by field; a verification that agrees, and
one that finds a turned bit. Prints one line for each; exits 1 if any failed.

The other tests of the plug-in run on a GPU as they are:

    MXFP4_TEST_TORCH=real MXFP4_TEST_DEVICE=cuda PYTHON=python3 SOURCE_DIR=$PWD \\
        tests/python/run test_vllm_hook_convert test_vllm_hook_verify test_vllm_hook_facts \\
        test_vllm_hook_damage test_vllm_hook_layouts test_vllm_hook_skip
"""
import argparse
import glob
import hashlib
import os
import sys

parser = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--triton-kernels", metavar="DIR", required=True)
parser.add_argument("--device", default="cuda")
arguments = parser.parse_args()
os.environ.update(MXFP4_TEST_TORCH="real", MXFP4_TEST_DEVICE=arguments.device)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import hook_env  # noqa: E402

hook_env.TRITON_KERNELS = os.path.abspath(arguments.triton_kernels)


def described(value):
    """An object of triton_kernels as plain values; tensors as type, shape, strides and a hash."""
    import torch
    if isinstance(value, torch.Tensor):
        return (str(value.dtype), list(value.shape), list(value.stride()), str(value.device.type),
                hashlib.sha256(hook_env.bits(value).tobytes()).hexdigest())
    if isinstance(value, (list, tuple)):
        return [described(item) for item in value]
    if type(value).__module__.startswith("triton_kernels") and hasattr(value, "__dict__"):
        return (type(value).__name__, {k: described(v) for k, v in sorted(vars(value).items())})
    return str(value)


def converted(case, blob, right, **environment):
    """(description of the four wrapped values, names taken, messages) of one conversion."""
    with hook_env.World(blob=blob and blob[1], model=blob[0] if blob else "",
                        **environment) as world:
        world.start()
        layer = world.convert(case, right=right)
        import triton_kernels
        assert os.path.realpath(triton_kernels.__file__ or list(triton_kernels.__path__)[0]
                                ).startswith(os.path.realpath(hook_env.TRITON_KERNELS))
        taken = list(world.hook.taken) if blob else []
        return described(layer.quant_method.values[:4]), taken, world.messages.text(0)


def main():
    failures = 0

    def report(what, good, text=""):
        nonlocal failures
        failures += not good
        print("%s %s%s" % ("ok  " if good else "FAIL", what, "" if good else ": " + text))

    cases = hook_env.goldens("triton*/*") + hook_env.goldens("aiter_mxfp4_fp8/*")
    # The stand-in for vLLM lacks what the generic converter does before TRITON's layout.
    cases = [c for c in cases if (c.backend, c.family) != ("TRITON", "generic")]
    for case in cases:
        blob = hook_env.make_blob(case)
        own, _, _ = converted(case, None, right=True)
        ours, taken, messages = converted(case, blob, right=False)
        report("%s: taken" % case.name, taken == [hook_env.PREFIX], str(messages))
        report("%s: equal objects" % case.name, own == ours, "%s\n  %s" % (own, ours))
        _, _, messages = converted(case, blob, right=True, MXFP4_REPACK_VERIFY="all")
        report("%s: verified" % case.name, "equals" in messages[-1], str(messages))
        damaged = hook_env.copied(blob)
        (path,) = glob.glob(os.path.join(damaged[1], "layer-*"))
        with open(path, "r+b") as file:  # the first tensor begins at a multiple of 4096
            header = 8 + int.from_bytes(file.read(8), "little")
            file.seek(header)
            byte = file.read(1)[0]
            file.seek(header)
            file.write(bytes([byte ^ 1]))
        _, _, messages = converted(case, damaged, right=True, MXFP4_REPACK_VERIFY="all")
        report("%s: a turned bit is found" % case.name, any("1 of" in m for m in messages),
               str(messages))
    print("%d cases, %d failures" % (len(cases), failures))
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
