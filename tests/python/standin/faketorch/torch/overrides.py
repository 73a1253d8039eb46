"""Modes that see calls of the functions that make tensors."""
import torch


class TorchFunctionMode:
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))

    def __enter__(self):
        torch._modes.append(self)
        return self

    def __exit__(self, *error):
        torch._modes.remove(self)
