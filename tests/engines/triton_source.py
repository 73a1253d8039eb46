"""The triton_kernels of ROCm builds on a CPU, from 0.31.0 on: layouts of its 3.8, executed from versions around the commit that those builds pin.

The pinned commit is not at hand. What converters call of it (`wrap_torch_tensor`, `convert_layout` and two layouts) is plain torch, so versions from
before it and of the release branch that it follows are executed, laid by hand into FOLDER/triton_kernels-COMMIT/site/triton_kernels (README.md says
from which repository). Their results must be equal. Everything else that vLLM imports of the package holds arguments and has no part in the bytes.
"""
import contextlib
import importlib
import importlib.util
import os
import sys
import types

COMMITS = ("5896368e186b", "3c764883c5db", "ae94d9657210")
FIRST = (0, 31, 0)
EXECUTED = ("triton_kernels.tensor", "triton_kernels.tensor_details.layout")


class Arguments:
    """A class of the package that keeps what it is told."""

    def __init__(self, *args, **kwargs):
        vars(self).update(kwargs)


# Module -> names that vLLM imports of it and that no byte goes through.
BYSTANDERS = {
    "triton_kernels.matmul": ("FlexCtx", "FnSpecs", "FusedActivation", "PrecisionConfig", "matmul"),
    "triton_kernels.matmul_details": (),
    "triton_kernels.matmul_details.opt_flags": ("update_opt_flags_constraints",),
    "triton_kernels.numerics": ("InFlexData",),
    "triton_kernels.swiglu": ("swiglu_fn",),
}


def of_package():
    return {name: module for name, module in sys.modules.items() if name.split(".")[0] == "triton_kernels"}


@contextlib.contextmanager
def apart():
    """Runs a block without the package's modules and puts those that were there back."""
    before = of_package()
    install({})
    try:
        yield
    finally:
        install(before)


def install(modules):
    """Puts one version's modules into this process, in place of another's."""
    for name in of_package():
        del sys.modules[name]
    sys.modules.update(modules)


def bystander(name, names):
    made = types.ModuleType(name)
    made.__path__ = []
    for each in names:
        setattr(made, each, type(each, (Arguments,), {}))
    return made


def loaded(root):
    """The modules of the package at `root`, with stand-ins for what nothing is executed of."""
    spec = importlib.util.spec_from_file_location("triton_kernels", os.path.join(root, "triton_kernels", "__init__.py"),
                                                  submodule_search_locations=[os.path.join(root, "triton_kernels")])
    with apart():
        package = importlib.util.module_from_spec(spec)
        sys.modules["triton_kernels"] = package
        spec.loader.exec_module(package)
        for name in EXECUTED:
            importlib.import_module(name)
        for name, names in BYSTANDERS.items():
            parent, _, last = name.rpartition(".")
            sys.modules[name] = bystander(name, names)
            setattr(sys.modules[parent], last, sys.modules[name])
        return of_package()


def sources(version, cache):
    """name -> modules, of every version that is at hand, for a release that takes 3.8 on ROCm."""
    if tuple(map(int, version.split(".")[:3])) < FIRST:
        return {}
    roots = {commit: os.path.join(cache, f"triton_kernels-{commit}", "site") for commit in COMMITS}
    return {name: loaded(root) for name, root in roots.items() if os.path.exists(root)}


def agreed(versions, convert):
    """The result of `convert` and the names of the versions that gave it, none where it never asked for a layout.

    Results must be equal; so must the errors, which it raises.
    """
    asked, results = set(), {}
    for name, modules in versions.items():
        install(modules)
        tensor = modules["triton_kernels.tensor"]
        real = tensor.convert_layout

        def convert_layout(*args, **kwargs):
            asked.add(name)
            return real(*args, **kwargs)
        tensor.convert_layout = convert_layout
        try:
            results[name] = convert(), None
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}", error
        finally:
            tensor.convert_layout = real
    first, error = next(iter(results.values()))
    if any(made != first for made, _ in results.values()):
        raise RuntimeError(f"versions of triton_kernels differ: {sorted(results)}")
    if error:
        raise error
    return first, sorted(asked)
