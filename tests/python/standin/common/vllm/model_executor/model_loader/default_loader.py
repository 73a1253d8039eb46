"""Stand-in."""
from vllm.model_executor.model_loader.weight_utils import (
    multi_thread_safetensors_weights_iterator, safetensors_weights_iterator)


class DefaultModelLoader:
    eager = False

    def _get_weights_iterator(self, source):
        if self.eager:
            return multi_thread_safetensors_weights_iterator(source, False)
        return safetensors_weights_iterator(source, False)
