"""Fingerprint of the code that converts the weights of one backend, read from vLLM's source files without importing them.

A converter is one long function with a branch per backend. Its branch fingerprint covers the statements that can run for one backend,
and every function of vLLM that these call, so a change in another backend's branch leaves it as it was. Comments, docstrings, type
annotations and layout of the text take no part. Tests on anything but the backend are kept with both their branches.
"""
import ast
import hashlib
import importlib.util
import os
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

ORACLE = "vllm.model_executor.layers.fused_moe.oracle.mxfp4"
CONVERTERS = {
    "gpt_oss": "convert_gpt_oss_weight_to_mxfp4_moe_kernel_format",
    "generic": "convert_weight_to_mxfp4_moe_kernel_format",
}
# Classes that convert by themselves: module, and the functions that do; and what they call for a backend.
_LAYERS = "vllm.model_executor.layers."
METHODS = {
    "CompressedTensorsW4A4Mxfp4MoEMethod":
        (_LAYERS + "quantization.compressed_tensors.compressed_tensors_moe.compressed_tensors_moe_w4a4_mxfp4",
         ("process_weights_after_loading",)),
    "INCMxfp4MoEMethod": (_LAYERS + "quantization.inc.schemes.inc_mxfp4_moe", ("process_weights_after_loading",)),
    "DeepGemmMegaMoEExperts":
        (_LAYERS + "fused_moe.deep_gemm_mega_moe",
         ("_create_weights", "_kernel_layout_shard", "_load_weight", "_map_global_expert_id", "_pack_scale", "_register_weight", "weight_loader")),
}
STEPS = {
    "CUTLASS_MXFP4_MXFP4": (_LAYERS + "fused_moe.experts.cutlass_moe", "swizzle_mxfp4_scales"),
    "MARLIN": (_LAYERS + "quantization.utils.marlin_utils_fp4", "prepare_moe_fp4_layer_for_marlin"),
}
BACKEND = "mxfp4_backend"
# What the bytes do not depend on: logging, configuration, platform and environment readers, custom operator registration.
IGNORED_MODULES = ("vllm.logger", "vllm.envs", "vllm.config", "vllm.platforms", "vllm.utils.import_utils", "vllm.utils.torch_utils",
                   "vllm.distributed", "vllm.forward_context", "vllm.triton_utils", "vllm.scalar_type", "vllm.utils.flashinfer")
MAX_DEPTH = 4


class Sources:
    """Parsed source files of vLLM: of a tree (`root` holds the folder vllm), or of the installed package."""

    def __init__(self, root: Optional[str] = None):
        if root is None:
            spec = importlib.util.find_spec("vllm")
            if spec is None or not spec.submodule_search_locations:
                raise FileNotFoundError("no package vllm")
            root = os.path.dirname(list(spec.submodule_search_locations)[0])
        self._root = root
        self._modules: Dict[str, Optional["Module"]] = {}

    def module(self, name: str) -> Optional["Module"]:
        """The module of that dotted name, None if there is no such file."""
        if name not in self._modules:
            self._modules[name] = self._read(name)
        return self._modules[name]

    def _read(self, name: str) -> Optional["Module"]:
        base = os.path.join(self._root, *name.split("."))
        for path, package in ((base + ".py", False), (os.path.join(base, "__init__.py"), True)):
            if os.path.isfile(path):
                with open(path, encoding="utf-8") as source:
                    return Module(name, package, ast.parse(source.read()))
        return None


class Module:
    """Definitions, imports and constants at the top level of one source file."""

    def __init__(self, name: str, package: bool, tree: ast.Module):
        self.name, self.package = name, package
        self.definitions: Dict[str, ast.AST] = {}
        self.imports: Dict[str, Tuple[str, str]] = {}
        self.values: Dict[str, ast.AST] = {}
        for statement in top_level(tree.body):
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                self.definitions[statement.name] = statement
            elif isinstance(statement, ast.ImportFrom):
                self.imports.update(imported(statement, self))
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                self.values[statement.targets[0].id] = statement.value


def top_level(body: List[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, those under a top-level if or try included."""
    for statement in body:
        if isinstance(statement, (ast.If, ast.Try)):
            yield from top_level(statement.body)
            yield from top_level(statement.orelse)
            for handler in getattr(statement, "handlers", []):
                yield from top_level(handler.body)
        else:
            yield statement


def imported(statement: ast.ImportFrom, module: Module) -> Dict[str, Tuple[str, str]]:
    """Local name -> (module, name) of a `from ... import` of vLLM."""
    target = statement.module or ""
    if statement.level:
        parts = module.name.split(".")
        keep = len(parts) - statement.level + (1 if module.package else 0)
        target = ".".join(parts[:keep] + ([target] if target else []))
    if target.split(".")[0] != "vllm":
        return {}
    return {alias.asname or alias.name: (target, alias.name) for alias in statement.names}


class Branch:
    """Picks the statements of a function that can run for one backend."""

    def __init__(self, module: Module, backend: str):
        self._module, self._backend = module, backend

    def statements(self, body: List[ast.stmt]) -> List[ast.stmt]:
        """The statements that can run, up to the first that certainly returns or raises."""
        kept: List[ast.stmt] = []
        for statement in body:
            if is_docstring(statement):
                continue
            if isinstance(statement, ast.If):
                kept += self._if(statement)
            else:
                kept.append(statement)
            if kept and ends(kept[-1]):
                break
        return kept

    def _if(self, statement: ast.If) -> List[ast.stmt]:
        answer = self.test(statement.test)
        if answer is True:
            return self.statements(statement.body)
        if answer is False:
            return self.statements(statement.orelse)
        both = ast.If(test=statement.test, body=self.statements(statement.body) or [ast.Pass()],
                      orelse=self.statements(statement.orelse))
        return [both]

    def test(self, test: ast.expr) -> Optional[bool]:
        """Whether a condition holds for the backend; None when that depends on more."""
        if isinstance(test, ast.BoolOp):
            answers = [self.test(v) for v in test.values]
            decisive = isinstance(test.op, ast.Or)
            if decisive in answers:
                return decisive
            return None if None in answers else not decisive
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            answer = self.test(test.operand)
            return None if answer is None else not answer
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name) and test.left.id == BACKEND):
            return None
        names = self.members(test.comparators[0])
        if names is None:
            return None
        inside = self._backend in names
        return inside if isinstance(test.ops[0], (ast.Eq, ast.In, ast.Is)) else not inside

    def members(self, node: ast.expr) -> Optional[Set[str]]:
        """The backends that an expression lists."""
        if isinstance(node, ast.Attribute):
            return {self._alias(node.attr)}
        if isinstance(node, ast.Name) and node.id in self._module.values:
            return self.members(self._module.values[node.id])
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            parts = [self.members(e) for e in node.elts]
            return None if None in parts else {name for part in parts for name in part or ()}
        return None

    def _alias(self, name: str) -> str:
        return {"AITER": "AITER_MXFP4_BF16"}.get(name, name)


def ends(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return bool(statement.orelse) and ends(statement.body[-1]) and ends(statement.orelse[-1])
    return isinstance(statement, (ast.Return, ast.Raise))


def is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)


def canonical(node: Any) -> str:
    """A text of the code's meaning that is the same for every Python version."""
    if isinstance(node, ast.AST):
        skipped = ("ctx", "kind", "type_comment", "type_params", "annotation", "returns", "decorator_list")
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            node = ast.Assign(targets=[node.target], value=node.value)
        fields = []
        for name in node._fields:
            value = getattr(node, name, None)
            if name in skipped or value is None or value == []:
                continue
            if name == "body" and isinstance(value, list):
                value = [s for s in value if not is_docstring(s)]
            fields.append(f"{name}={canonical(value)}")
        return f"{type(node).__name__}({','.join(fields)})"
    if isinstance(node, list):
        return "[" + ",".join(canonical(n) for n in node) + "]"
    return repr(node)


class Collector:
    """Gathers the text of a branch and of the functions of vLLM that it reaches."""

    def __init__(self, sources: Sources):
        self._sources = sources
        self._texts: List[str] = []
        self._seen: Set[Tuple[str, str]] = set()

    def branch(self, module: Module, function: str, backend: str, depth: int = 0) -> None:
        if (module.name, function) in self._seen:
            return
        self._seen.add((module.name, function))
        definition = module.definitions[function]
        assert isinstance(definition, ast.FunctionDef)
        self._add(module, function, Branch(module, backend).statements(definition.body), backend, depth)

    def _add(self, module: Module, name: str, statements: List[ast.stmt], backend: str, depth: int) -> None:
        self._texts.append(name + ":" + "".join(canonical(s) for s in statements))
        if depth < MAX_DEPTH:
            self._follow(module, statements, backend, depth)

    def _follow(self, module: Module, statements: List[ast.stmt], backend: str, depth: int) -> None:
        local: Dict[str, Tuple[str, str]] = {}
        nodes = [node for statement in statements for node in ast.walk(statement)]
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                local.update(imported(node, module))
        wanted: List[Tuple[str, str]] = []
        for node in nodes:
            if isinstance(node, ast.Call):
                wanted.append(callee(node.func))
        for name, member in sorted(set(w for w in wanted if w[0])):
            self._reach(local.get(name) or module.imports.get(name) or (module.name, name), member, backend, depth + 1)

    def _reach(self, target: Tuple[str, str], member: str, backend: str, depth: int) -> None:
        module = self._sources.module(target[0])
        if module is None or target[0].startswith(IGNORED_MODULES):
            return
        name = target[1]
        if name in module.imports:
            self._reach(module.imports[name], member, backend, depth)
            return
        definition = module.definitions.get(name)
        if isinstance(definition, ast.ClassDef) and member:
            methods = [s for s in definition.body if isinstance(s, ast.FunctionDef) and s.name == member]
            definition, name = (methods[0] if methods else None), f"{name}.{member}"
        if not isinstance(definition, ast.FunctionDef) or (module.name, name) in self._seen:
            return
        self._seen.add((module.name, name))
        self._add(module, name, Branch(module, backend).statements(definition.body), backend, depth)

    def method(self, module: Module, kind: str, backend: str) -> None:
        """The functions of a class that converts by itself, and what it calls for the backend."""
        definition = module.definitions[kind]
        assert isinstance(definition, ast.ClassDef)
        self._texts += [canonical(s) for s in definition.body if isinstance(s, ast.FunctionDef) and s.name in METHODS[kind][1]]
        if backend in STEPS:
            self._reach(STEPS[backend], "", backend, 0)

    def digest(self) -> str:
        return hashlib.sha256("\n".join(sorted(self._texts)).encode()).hexdigest()[:16]

    def reached(self) -> List[str]:
        return sorted(f"{module}.{name}" for module, name in self._seen)


def callee(function: ast.expr) -> Tuple[str, str]:
    """(name, member) of what a call names: f(...) or Class.method(...)."""
    if isinstance(function, ast.Name):
        return function.id, ""
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.value.id, function.attr
    return "", ""


def backends(sources: Sources) -> List[str]:
    """The enumerators of the release's MXFP4 backends without aliases, in order."""
    module = sources.module(ORACLE)
    if module is None:
        raise FileNotFoundError(ORACLE)
    definition = module.definitions["Mxfp4MoeBackend"]
    assert isinstance(definition, ast.ClassDef)
    names: Dict[str, str] = {}
    for statement in definition.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value = ast.literal_eval(statement.value)
            names.setdefault(value, statement.targets[0].id)
    return [n for n in names.values() if n != "NONE"]


def branch_fingerprint(sources: Sources, code: str, backend: str) -> str:
    """16 hex digits for the code that converts `backend` in a family (gpt_oss or generic) or a class of METHODS. KeyError: no such converter."""
    return collect(sources, code, backend).digest()


def collect(sources: Sources, code: str, backend: str) -> Collector:
    name = METHODS[code][0] if code in METHODS else ORACLE
    module = sources.module(name)
    if module is None:
        raise FileNotFoundError(name)
    collector = Collector(sources)
    if code in METHODS:
        collector.method(module, code, backend)
    else:
        collector.branch(module, CONVERTERS[code], backend)
    return collector


def branch_fingerprints(sources: Sources) -> Dict[str, Dict[str, str]]:
    """family or method class -> backend -> fingerprint, for every backend of a release."""
    made = {family: {backend: branch_fingerprint(sources, family, backend) for backend in backends(sources)} for family in CONVERTERS}
    for kind, (name, functions) in METHODS.items():
        if sources.module(name) is not None:
            steps = STEPS if "process_weights_after_loading" in functions else ("DEEP_GEMM_MEGA_MOE",)
            made[kind] = {backend: branch_fingerprint(sources, kind, backend) for backend in steps}
    return made
