"""Stand-in: what vLLM's reload does with the layers, as far as a loader sees it."""
from types import SimpleNamespace

_infos = {}


class LayerReloadingInfo(SimpleNamespace):
    def reset(self):
        self.__dict__.update(load_numel=0, load_numel_total=None, kernel_tensors=None, kernel_non_persistent_buffers=set())

    def can_load(self):
        return self.load_numel_total is not None


def get_layerwise_info(layer):
    if id(layer) not in _infos:
        _infos[id(layer)] = LayerReloadingInfo(layer=layer)
        _infos[id(layer)].reset()
    return _infos[id(layer)]


def initialize_layerwise_reload(model):
    """Notes the parameters and takes them away, unless a layer was begun already."""
    for layer in model.modules():
        info = get_layerwise_info(layer)
        if info.can_load():
            continue
        info.kernel_tensors = dict(layer._parameters), dict(layer._buffers)
        info.load_numel_total = 1
        layer._parameters.clear()


def finalize_layerwise_processing(model, model_config):
    """Puts back what was noted."""
    for layer in model.modules():
        info = get_layerwise_info(layer)
        if info.can_load():
            layer._parameters.clear()
            layer._parameters.update(info.kernel_tensors[0])
        info.reset()
