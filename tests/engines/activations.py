#!/usr/bin/env python3
"""What a checkpoint's or the user's type of activations does in a release: the method class that serves compressed-tensors, and Humming's input.

usage: activations.py [--cache DIR] VERSION...

Executes, in a faked world as run.py does, `CompressedTensorsMoEMethod.get_moe_method` with the real compressed-tensors package and the release's
own method classes, and both converters up to the call that packs for Humming, whose input schema is kept. Writes testdata/engines/activations.json:
{"wheels": {VERSION: file, digest, pins}, "quantizations": [config...], "methods": [row...], "humming": [row...]}; a row names the releases in which
it came out so, and a method's row the number of its quantization.
"""
import argparse
import importlib
import json
import os
import sys
import tempfile
import traceback
import types

import grid
import store
import wheels

PATH = os.path.join(store.FOLDER, "activations.json")
MACHINES = [("cuda", arch) for arch in ("sm80", "sm90", "sm100", "sm103", "sm120")] + [("rocm", "gfx950"), ("rocm", "gfx942"), ("xpu", "")]
STARTS = [("cuda", "sm90"), ("rocm", "gfx950"), ("rocm", "gfx942"), ("xpu", "")]
WEIGHTS = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True}
TOKEN = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True, "symmetric": True}
GROUP = TOKEN | {"strategy": "group"}
# Inputs that meet and miss each condition of the method for FP8 activations, and those that leave it to defaults.
INPUTS = (None, {}, TOKEN, GROUP | {"group_size": 128}, GROUP | {"group_size": 32}, GROUP | {"group_size": 32, "scale_dtype": "torch.uint8"},
          GROUP | {"group_size": 64}, {"type": "float", "group_size": 128, "dynamic": True}, {"type": "float", "strategy": "token", "dynamic": True},
          TOKEN | {"type": "FLOAT", "strategy": "TOKEN"}, TOKEN | {"type": "int"}, {"num_bits": 8, "strategy": "token", "dynamic": True},
          TOKEN | {"num_bits": 4}, TOKEN | {"symmetric": False}, TOKEN | {"strategy": "tensor"}, TOKEN | {"strategy": "tensor", "dynamic": False},
          TOKEN | {"dynamic": False}, GROUP, TOKEN | {"group_size": 128}, TOKEN | {"dynamic": "local", "strategy": "tensor_group", "group_size": 16}, GROUP | {"group_size": 128, "dynamic": False}, {"num_bits": 8, "type": "float", "dynamic": True}, TOKEN | {"dynamic": "local"},
          {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "dynamic": True, "symmetric": True})
OTHER = {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True, "dynamic": False}
EXPERTS = "re:.*mlp.experts.*"


def group(weights, inputs, *targets):
    return {"weights": weights, "input_activations": inputs, "targets": list(targets)}


def configs():
    """Quantizations: each kind of input, a dynamic weight, and several groups."""
    def quantization(**groups):
        return {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "config_groups": groups}
    for inputs in INPUTS:
        yield quantization(group_0=group(WEIGHTS, inputs, "Linear"))
    yield quantization(group_0=group(WEIGHTS | {"dynamic": True}, TOKEN, "Linear"))
    for first, second in ((WEIGHTS, None), TOKEN), ((WEIGHTS, TOKEN), None), ((OTHER, TOKEN), TOKEN), ((OTHER, TOKEN), None):
        yield quantization(group_0=group(*first, "Linear"), group_1=group(WEIGHTS, second, EXPERTS))


def method_rows(release, scene, platform, archs):
    """The class, its activation key, and what it chose; or the error."""
    module = importlib.import_module("vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors")
    base = importlib.import_module("vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors_moe.compressed_tensors_moe")

    class RoutedExperts(release.torch.nn.Module):
        ckpt_gate_proj_name, ckpt_up_proj_name, ckpt_down_proj_name = "gate_proj", "up_proj", "down_proj"

    for arch in archs:
        case = grid.case((platform, arch), grid.GENERIC)
        scene.set(arch, case["libs"], case["env"])
        for number, config in enumerate(configs()):
            row = {"quantization": number, "platform": platform, "arch": arch}
            release._set_config(case)
            layer = RoutedExperts()
            layer.moe_config = release.moe_config(case)
            try:
                made = module.CompressedTensorsConfig.from_config(json.loads(json.dumps(config)))
                made.packed_modules_mapping = {}
                method = base.CompressedTensorsMoEMethod.get_moe_method(made, layer, "model.layers.0.mlp.experts")
                row |= {"method": type(method).__name__, "backend": method.mxfp4_backend.name, "experts_class": method.experts_cls.__name__,
                        "activation_key": str(getattr(method, "activation_key", None))}
            except Exception as e:
                row["error"] = type(e).__name__
            yield row


def humming_rows(release, scene, archs):
    """What both converters give Humming of a checkpoint's key, the user's and the variable."""
    moe = importlib.import_module("vllm.model_executor.layers.quantization.utils.humming")
    schema = importlib.import_module("vllm.model_executor.layers.quantization.utils.humming.schema")
    schema.quant_key_to_input_schema = moe.quant_key_to_input_schema = lambda key: release.key_name(key)
    said = []
    moe.convert_to_humming_moe_kernel_format = lambda layer, **values: said.append(values)
    tensor = release.torch.zeros(1, 64, 16, dtype=release.torch.uint8)
    for arch in archs:
        for family, name in (("gpt_oss", "convert_gpt_oss_weight_to_mxfp4_moe_kernel_format"), ("generic", "convert_weight_to_mxfp4_moe_kernel_format")):
            function = getattr(release.oracle, name)
            for env in ({}, {"VLLM_HUMMING_INPUT_QUANT_CONFIG": '{"dtype": "int8"}'}):
                case = grid.case(("cuda", arch), grid.GENERIC, env=env)
                for checkpoint in (None, "fp8_per_token", "fp8_per_block_dynamic", "mxfp8") if family == "generic" else (None,):
                    for user in (None, *release.keys):
                        scene.set(arch, case["libs"], env)
                        release._set_config(case | {"activation_override": user})
                        layer = types.SimpleNamespace(w13_weight=tensor, w2_weight=tensor, w13_weight_scale=tensor, w2_weight_scale=tensor)
                        key = {"activation_key": release.keys.get(checkpoint)} if "activation_key" in function.__code__.co_varnames[:function.__code__.co_argcount] else {}
                        row = {"arch": arch, "family": family, "env": env, "checkpoint": checkpoint, "user": user}
                        said.clear()
                        try:
                            function(release.oracle.Mxfp4MoeBackend.HUMMING, layer, tensor, tensor, tensor, tensor, **key)
                            row["input"] = said[0].get("input_schema")
                        except ValueError as e:
                            row["error"] = type(e).__name__
                        yield row


def child(version, cache, platform, start, path):
    import decisions
    import world

    scene = world.start(wheels.site(version, cache), platform, start)
    release = decisions.Release(scene)
    archs = [arch for name, arch in MACHINES if name == platform and (name != "rocm" or arch == start)]
    made = {"methods": list(method_rows(release, scene, platform, archs)),
            "humming": list(humming_rows(release, scene, ("sm80", "sm90"))) if platform == "cuda" else []}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(made, file)


def executed(version, cache):
    """The rows of one release, each platform in a process of its own."""
    rows = {"methods": [], "humming": []}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "part")
        for platform, start in STARTS:
            pid = os.fork()
            if not pid:
                code = 1
                try:
                    child(version, cache, platform, start, path)
                    code = 0
                except BaseException:
                    traceback.print_exc()
                sys.stderr.flush()
                os._exit(code)
            if os.waitpid(pid, 0)[1]:
                sys.exit(f"{version} {platform} {start}: failed")
            for kind, made in json.load(open(path, encoding="utf-8")).items():
                rows[kind] += made
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("versions", nargs="+")
    parser.add_argument("--cache", default=wheels.default_cache())
    arguments = parser.parse_args()
    stored = json.load(open(PATH, encoding="utf-8")) if os.path.exists(PATH) else {"wheels": {}, "methods": [], "humming": []}
    stored["quantizations"] = list(configs())
    for version in arguments.versions:
        made = executed(version, arguments.cache)
        stored["wheels"][version] = wheels.provenance(version, arguments.cache)
        for kind, rows in made.items():
            merged = {}
            for row in stored[kind]:
                releases = [release for release in row.pop("releases") if release != version]
                merged[json.dumps(row, sort_keys=True)] = (row, releases)
            for row in rows:
                merged.setdefault(json.dumps(row, sort_keys=True), (row, []))[1].append(version)
            stored[kind] = [row | {"releases": sorted(releases, key=store.by_version)} for row, releases in merged.values() if releases]
        print(version, ", ".join(f"{len(rows)} {kind}" for kind, rows in made.items()), flush=True)
    with open(PATH, "w", encoding="utf-8") as file:
        lists = ",\n".join(f'"{kind}": [\n' + ",\n".join(json.dumps(row, separators=(",", ":")) for row in stored[kind]) + "\n]" for kind in ("quantizations", "methods", "humming"))
        file.write(f'{{"wheels": {json.dumps(stored["wheels"])},\n{lists}}}\n')


if __name__ == "__main__":
    main()
