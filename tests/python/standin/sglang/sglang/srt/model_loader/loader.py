"""A loader that gives the tensors it is given, creates a model's layers, fills and converts them."""


class DefaultModelLoader:
    def __init__(self, tensors, layers):
        self.tensors, self.layers = tensors, layers

    def _get_weights_iterator(self, source):
        for name, tensor in self.tensors.items():
            self.read.append(name)
            yield name, tensor

    def load_model(self, *, model_config, device_config):
        self.read, self.loaded = [], []
        made = [create() for create in self.layers]
        for name, tensor in self._get_weights_iterator(model_config):
            self.loaded.append(name)
            for layer in made:
                layer.load(name, tensor)
        for layer in made:
            layer.quant_method.process_weights_after_loading(layer)
        return Model(made)


class Model:
    def __init__(self, layers):
        self.layers = layers

    def named_parameters(self):
        for number, layer in enumerate(self.layers):
            for name, parameter in layer._parameters.items():
                yield f"layers.{number}.{name}", parameter
