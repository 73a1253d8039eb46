"""Executes a release's selectors on inputs.

ask.py asks; this file adds the faked worlds. An answer
is {"expect": ..., "trace": ..., "derived": ...} as in testdata/oracle, or {"absent": NAME}.
"""
import ast
import functools
import importlib
import inspect
import os
import sys
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "python"))
import ask
import world


# All-to-all backends that the command line still takes, and the configuration replaces.
REMOVED = ("naive", "pplx")


class Release(ask.Selectors):
    """The imported modules of one release on one platform, in a faked world."""

    def __init__(self, scene):
        super().__init__()
        self.scene = scene
        scene.starting = False
        scene.refresh()
        self.oracle.backend_to_kernel_cls = self._importing(self.oracle.backend_to_kernel_cls)
        from vllm.config.kernel import KernelConfig
        from vllm.config.parallel import ParallelConfig

        self._backend_name, self._parallel_config = KernelConfig._normalize_moe_backend, ParallelConfig

    def moe_config(self, case):
        """With names as the release's own configuration hands them on."""
        parallel = case["parallel"]
        if parallel["all2all_backend"] in REMOVED and parallel["all2all_backend"] in self.all2all:
            made = self._parallel_config(all2all_backend=parallel["all2all_backend"])
            parallel = {**parallel, "all2all_backend": made.all2all_backend}
        made = super().moe_config({**case, "moe_backend": self._backend_name(case["moe_backend"]), "parallel": parallel})
        strategy = case["env"].get("VLLM_MOE_ROUTING_SIMULATION_STRATEGY")
        if strategy and hasattr(made, "require_decomposed_backend"):  # as the layer's constructor asks its router
            router = importlib.import_module("vllm.model_executor.layers.fused_moe.router.routing_simulator_router")
            made.require_decomposed_backend = not router.RoutingSimulator.get_strategy(strategy).supports_monolithic_logits
        return made

    def _importing(self, classes_of):
        """The classes of a backend, or the error of importing their module where the scene lacks a package: all were imported at the start."""
        def run(backend):
            classes = classes_of(backend)
            for name in sorted({name for cls in classes for name in imported(cls.__module__)}):
                flag = world.flag_of(name)
                if flag and not self.scene.importable(flag):
                    raise ModuleNotFoundError(f"No module named '{name.split('.')[0]}'", name=name)
            return classes
        return run


@functools.lru_cache(maxsize=None)
def imported(module):
    """The modules that a module imports whatever the circumstances."""
    names = []
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.append(node.module)
    return names


def answers(release, cases):
    """The answers to inputs, in their order; inputs of one machine are asked together."""
    made = [None] * len(cases)
    for i in sorted(range(len(cases)), key=lambda i: (cases[i]["arch"], cases[i]["libs"], sorted(cases[i]["env"].items()))):
        release.scene.set(cases[i]["arch"], cases[i]["libs"], cases[i]["env"])
        try:
            made[i] = release.decide(cases[i])
        except Exception:
            # Not an answer: the release asked something that the fakes do not know.
            traceback.print_exc()
            print("input:", cases[i], flush=True)
            made[i] = None
    if None in made:
        raise RuntimeError(f"{made.count(None)} inputs without an answer")
    return made
