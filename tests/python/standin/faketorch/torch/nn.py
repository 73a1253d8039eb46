"""Module and Parameter of the stand-in torch."""
from collections import OrderedDict

import torch


class _IsParameter(type):
    def __instancecheck__(cls, value):
        return hasattr(value, "requires_grad") and hasattr(value, "is_meta")


class Parameter(metaclass=_IsParameter):
    """A tensor with its attributes and a mark, as torch has it: a view of the data given."""

    def __new__(cls, tensor, requires_grad=True):
        made = torch.Tensor(tensor._array, tensor.dtype, tensor.device)
        made.requires_grad = requires_grad
        return made


class Module:
    def __init__(self):
        self.__dict__["_parameters"] = OrderedDict()
        self.__dict__["_buffers"] = OrderedDict()
        self.__dict__["_non_persistent_buffers_set"] = set()

    def register_parameter(self, name, parameter):
        if name not in self._parameters and hasattr(self, name):
            raise KeyError("attribute '%s' already exists" % name)
        self._parameters[name] = parameter

    def __getattr__(self, name):
        parameters = self.__dict__.get("_parameters", {})
        if name in parameters:
            return parameters[name]
        raise AttributeError(name)

    def __setattr__(self, name, value):
        if isinstance(value, Parameter):
            self.__dict__.pop(name, None)
            self._parameters[name] = value
        elif name in self._parameters:
            if value is not None:
                raise TypeError("cannot assign %r as parameter '%s'" % (type(value), name))
            self._parameters[name] = None
        else:
            self.__dict__[name] = value

    def __delattr__(self, name):
        for place in (self._parameters, self._buffers):
            if name in place:
                del place[name]
                return
        object.__delattr__(self, name)
