"""Stand-in: one iterator that asks before it reads, and one that does not."""
from vllm.model_executor.model_loader.ep_weight_filter import should_skip_weight

read = []


def safetensors_weights_iterator(tensors, local_expert_ids=None):
    for name, tensor in tensors.items():
        if should_skip_weight(name, local_expert_ids):
            continue
        read.append(name)
        yield name, tensor


def eager_weights_iterator(tensors):
    for name, tensor in tensors.items():
        read.append(name)
        yield name, tensor
