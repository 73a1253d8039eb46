"""Stand-in."""
from vllm.model_executor.model_loader.weight_utils import (eager_weights_iterator,
                                                           safetensors_weights_iterator)


class DefaultModelLoader:
    eager = False

    def _get_weights_iterator(self, source):
        if self.eager:
            return eager_weights_iterator(source)
        return safetensors_weights_iterator(source)
