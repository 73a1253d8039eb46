"""Stand-in: the registry of quantization methods."""
from vllm.model_executor.layers.quantization.base_config import QuantizationConfig

QUANTIZATION_METHODS = ["mxfp4"]
_CONFIGS = {"mxfp4": QuantizationConfig}


def register_quantization_config(quantization):
    def wrapper(config):
        QUANTIZATION_METHODS.append(quantization)
        _CONFIGS[quantization] = config
        return config

    return wrapper


def get_quantization_config(quantization):
    return _CONFIGS[quantization]
