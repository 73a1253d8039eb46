"""Names of vLLM's modules, functions and classes that the plug-in uses."""

ORACLE = "vllm.model_executor.layers.fused_moe.oracle.mxfp4"
METHODS = "vllm.model_executor.layers.quantization.mxfp4"
QUARK = "vllm.model_executor.layers.quantization.quark.quark_moe"
COMPRESSED_TENSORS = ("vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors_moe."
                      "compressed_tensors_moe_w4a4_mxfp4")
AUTOROUND = "vllm.model_executor.layers.quantization.inc.schemes.inc_mxfp4_moe"
ONLINE = "vllm.model_executor.layers.quantization.online.mxfp4"
WEIGHT_UTILS = "vllm.model_executor.model_loader.weight_utils"
LOADERS = "vllm.model_executor.model_loader"
QUANTIZATION = "vllm.model_executor.layers.quantization"
DEFAULT_LOADER = "vllm.model_executor.model_loader.default_loader"

# Converter -> the family that it converts.
CONVERTERS = {
    "convert_gpt_oss_weight_to_mxfp4_moe_kernel_format": "gpt_oss",
    "convert_weight_to_mxfp4_moe_kernel_format": "generic",
}
# Modules that bind the converters by name.
IMPORTERS = (METHODS, QUARK, ONLINE)
METHOD_CLASSES = {METHODS: ("GptOssMxfp4MoEMethod", "Mxfp4MoEMethod"),
                  QUARK: ("QuarkOCP_MX_MoEMethod",),
                  COMPRESSED_TENSORS: ("CompressedTensorsW4A4Mxfp4MoEMethod",),
                  AUTOROUND: ("INCMxfp4MoEMethod",)}
# Those that ask no converter.
BY_THEMSELVES = (*METHOD_CLASSES[COMPRESSED_TENSORS], *METHOD_CLASSES[AUTOROUND])
# Experts that are loaded ready for the kernel.
MEGA = "vllm.model_executor.layers.fused_moe.deep_gemm_mega_moe"
MEGA_CLASS, MEGA_BACKEND = "DeepGemmMegaMoEExperts", "DEEP_GEMM_MEGA_MOE"
# Others convert once all is loaded: up to 0.32 the models' own classes, of which the second extends the first, and AITER's.
AITER_MEGA_CLASS, AITER_MEGA_BACKEND = "DeepseekV4AiterMegaMoEExperts", "AITER_MEGA_MOE"
CONVERTING_MEGA = {"deep_gemm_mega_moe": {"vllm.model_executor.models.deepseek_v4": "DeepseekV4MegaMoEExperts",  # 0.21.0
                                          "vllm.models.deepseek_v4.nvidia.model": "DeepseekV4MegaMoEExperts",
                                          "vllm.models.kimi_k3.nvidia.model": "KimiK3MegaMoEExperts"},
                   "aiter_mega_moe": {"vllm.models.deepseek_v4.amd.mega_moe": AITER_MEGA_CLASS}}
MEGA_CLASSES = (MEGA_CLASS, *(name for classes in CONVERTING_MEGA.values() for name in classes.values()))
# Method class -> the family as which its experts are converted.
FAMILIES = {"GptOssMxfp4MoEMethod": "gpt_oss", "Mxfp4MoEMethod": "generic", "QuarkOCP_MX_MoEMethod": "gpt_oss",
            "CompressedTensorsW4A8Mxfp4MoEMethod": "generic",  # a subclass of Mxfp4MoEMethod
            **dict.fromkeys((*BY_THEMSELVES, *MEGA_CLASSES), "generic")}
CUTLASS = "CUTLASS_MXFP4_MXFP4"  # the backend of BY_THEMSELVES that they do not name

LOAD_FORMAT = "mxfp4_repack"
# In a model directory of `convert --include-rest`, config.json's quant_method is QUANT_METHOD, which
# no engine knows, and QUANT_METHOD_KEY holds the checkpoint's own.
QUANT_METHOD = "mxfp4_repack"
QUANT_METHOD_KEY = "mxfp4_repack_quant_method"
