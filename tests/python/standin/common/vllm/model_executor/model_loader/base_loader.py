"""Stand-in: what loaders are derived from."""


class BaseModelLoader:
    def __init__(self, load_config):
        self.load_config = load_config
