"""Stand-in: what quantization configurations are derived from."""


class QuantizationConfig:
    @classmethod
    def override_quantization_method(cls, hf_quant_cfg, user_quant, hf_config=None):
        return None
