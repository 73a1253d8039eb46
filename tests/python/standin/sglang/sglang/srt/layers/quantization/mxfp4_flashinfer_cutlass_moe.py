"""The method of FP4 experts on capability 12.x: weights stay, scales are interleaved in place."""
import types

import torch


class Mxfp4FlashinferCutlassMoEMethod:
    def __init__(self, fp8_method, prefix):
        self._use_mxfp8_act_scaling = True
        self._use_sm90_humming = False
        self._fp8 = fp8_method
        self.prefix = prefix
        self._swiglu_limit_tensor = None

    def create_weights(self, layer, num_experts, hidden_size, intermediate_size_per_partition, params_dtype, **extra_weight_attrs):
        rows, half = 2 * intermediate_size_per_partition, intermediate_size_per_partition // 2
        for name, shape, kind in (("w13_weight", (num_experts, rows, hidden_size // 2), torch.uint8),
                                  ("w2_weight", (num_experts, hidden_size, half), torch.uint8),
                                  ("w13_weight_scale_inv", (num_experts, rows, hidden_size // 32), torch.uint8),
                                  ("w2_weight_scale_inv", (num_experts, hidden_size, half // 16), torch.uint8)):
            layer.register_parameter(name, torch.nn.Parameter(torch.zeros(*shape, dtype=kind), requires_grad=False))
            layer._parameters[name].weight_loader = extra_weight_attrs.get("weight_loader")

    def create_moe_runner(self, layer, moe_runner_config):
        device = layer.w13_weight.device
        self._swiglu_limit_tensor = torch.full((layer.num_local_experts,), 10.0, dtype=torch.float32, device=device)
        self.runner = types.SimpleNamespace(config=moe_runner_config)

    def process_weights_after_loading(self, layer):
        from flashinfer import block_scale_interleave
        for name in ("w13_weight_scale_inv", "w2_weight_scale_inv"):
            scale = getattr(layer, name).data
            scale.copy_(block_scale_interleave(scale).reshape(tuple(scale.shape)))
        layer.global_scale = torch.ones(layer.num_local_experts, dtype=torch.float32, device=layer.w13_weight.device)
        layer._dsv4_mxfp4_backend = "flashinfer_cutlass_sm120"
