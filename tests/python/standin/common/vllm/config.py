"""Stand-in: the configuration that is current; at the newer revision asking for none raises."""
current = None


def get_current_vllm_config():
    assert current is not None, "Current vLLM config is not set."
    return current
