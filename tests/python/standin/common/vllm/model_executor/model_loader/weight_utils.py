"""Stand-in: one iterator that asks before it reads, and one that does not."""
from vllm.model_executor.model_loader.ep_weight_filter import should_skip_weight

read = []


def safetensors_weights_iterator(hf_weights_files, use_tqdm_on_load, local_expert_ids=None):
    for name, tensor in hf_weights_files.items():
        if should_skip_weight(name, local_expert_ids):
            continue
        read.append(name)
        yield name, tensor


def multi_thread_safetensors_weights_iterator(hf_weights_files, use_tqdm_on_load):
    for name, tensor in hf_weights_files.items():
        read.append(name)
        yield name, tensor
