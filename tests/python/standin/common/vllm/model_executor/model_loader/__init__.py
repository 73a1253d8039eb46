"""Stand-in: the registry of load formats."""
_LOAD_FORMAT_TO_MODEL_LOADER = {}


def register_model_loader(load_format):
    def wrapper(loader):
        _LOAD_FORMAT_TO_MODEL_LOADER[load_format] = loader
        return loader

    return wrapper


def get_model_loader(load_config):
    if load_config.load_format not in _LOAD_FORMAT_TO_MODEL_LOADER:
        raise ValueError("Load format `%s` is not supported" % load_config.load_format)
    return _LOAD_FORMAT_TO_MODEL_LOADER[load_config.load_format](load_config)
