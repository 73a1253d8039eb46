"""Arguments of vLLM's engine that every test with a real release shares."""

# What an engine without its compiled kernels needs.
WITHOUT_KERNELS = {"compilation_config": {"custom_ops": ["none"]}, "attention_backend": "TRITON_ATTN", "disable_custom_all_reduce": True,
                   "ir_op_priority": {"rms_norm": ["native"], "fused_add_rms_norm": ["native"]}}


def known(arguments):
    """Those that this release has."""
    from vllm.engine.arg_utils import EngineArgs

    return {key: value for key, value in arguments.items() if key in EngineArgs.__dataclass_fields__}
