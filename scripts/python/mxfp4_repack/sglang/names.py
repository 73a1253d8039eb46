"""Names of SGLang's modules, classes and parameters that the plug-in uses."""

Q = "sglang.srt.layers.quantization."
LOADER = "sglang.srt.model_loader.loader"
LOADER_CLASS = "DefaultModelLoader"

# Module -> the method class there whose process_weights_after_loading() converts experts.
METHOD_CLASSES = {
    Q + "mxfp4": "Mxfp4MoEMethod",
    Q + "mxfp4_flashinfer_cutlass_moe": "Mxfp4FlashinferCutlassMoEMethod",
    Q + "mxfp4_flashinfer_trtllm_moe": "Mxfp4FlashinferTrtllmMoEMethod",
    Q + "mxfp4_marlin_moe": "Mxfp4MarlinMoEMethod",
}
# Those of FP4 experts in an FP8 checkpoint (DeepSeek-V4); Mxfp4MoEMethod is gpt-oss's and compressed-tensors'.
FP4_EXPERTS = tuple(name for name in METHOD_CLASSES.values() if name != "Mxfp4MoEMethod")

# A blob's tensor -> what SGLang may call the parameter.
PARAMETERS = {
    "w13_weight": ("w13_weight",), "w2_weight": ("w2_weight",),
    "w13_weight_scale": ("w13_weight_scale", "w13_weight_scale_inv"),
    "w2_weight_scale": ("w2_weight_scale", "w2_weight_scale_inv"),
    "w13_bias": ("w13_weight_bias",), "w2_bias": ("w2_weight_bias",),
}
# Attributes of a method that hold wrapped tensors of triton_kernels, by the blob's tensor.
WRAPPERS = {"w13_weight": "w13_weight_triton_tensor", "w2_weight": "w2_weight_triton_tensor",
            "w13_weight_scale": "w13_precision_config", "w2_weight_scale": "w2_precision_config"}
DEVICE = "_mxfp4_repack_device"  # on a layer without raw experts: where they belong
