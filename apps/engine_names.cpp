#include "apps/engine_names.hpp"

namespace mxfp4 {
namespace {

// Without their "VLLM_"; each ends in a blank.
constexpr std::string_view kServingVariables =
    "ADAPTIVE_VERIFICATION_PROFILE_CONTEXT_LEN ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE "
    "ALLOW_INSECURE_SERIALIZATION ALLOW_LONG_MAX_MODEL_LEN ALLOW_RUNTIME_LORA_UPDATING "
    "ALLREDUCE_USE_FLASHINFER ALLREDUCE_USE_FLASHINFER_PCIE_IPC ALLREDUCE_USE_SYMM_MEM API_KEY "
    "ASSETS_CACHE ASSETS_CACHE_MODEL_CLEAN AUDIO_FETCH_TIMEOUT BEAM_ALWAYS_CONSTRAIN_OUTPUT "
    "BLOCKSCALE_FP8_GEMM_FLASHINFER BUILD_COMMIT BUILD_PIPELINE BUILD_URL CACHE_ROOT "
    "CHAT_TEMPLATE_FUEL CHAT_TEMPLATE_RENDER_TIMEOUT CI_USE_S3 "
    "COHERE2_ATTN_MOE_DUAL_STREAM_TOKEN_THRESHOLD COMPILE_CACHE_SAVE_FORMAT "
    "COMPUTE_NANS_IN_LOGITS CONFIGURE_LOGGING CONFIG_ROOT CPU_ATTN_SPLIT_KV CPU_CI_ENV "
    "CPU_INT4_W4A8 CPU_KVCACHE_SPACE CPU_NUM_OF_RESERVED_CPU CPU_OMP_THREADS_BIND CPU_SGL_KERNEL "
    "CPU_SIM_MULTI_NUMA CUDART_SO_PATH CUDA_COMPATIBILITY_PATH CUSTOM_ALLREDUCE_ALGO "
    "CUSTOM_SCOPES_FOR_PROFILING DBO_COMM_SMS DCP_Q_REPLICATE DEBUG_DUMP_PATH "
    "DEBUG_LOG_API_SERVER_RESPONSE DEBUG_MFU_METRICS DEBUG_WORKSPACE DEEPEP_BUFFER_SIZE_MB "
    "DEEPEP_HIGH_THROUGHPUT_FORCE_INTRA_NODE DEEPEP_LOW_LATENCY_USE_MNNVL "
    "DEEPEP_V2_ALLOW_HYBRID_MODE DEEPEP_V2_ALLOW_MULTIPLE_REDUCTION DEEPEP_V2_PREFER_OVERLAP "
    "DISABLED_KERNELS DISABLE_COMPILE_CACHE DISABLE_LOG_LOGO DISABLE_PYNCCL "
    "DISABLE_REQUEST_ID_RANDOMIZATION DISTRIBUTED_USE_SPLIT_GROUP DIST_IDENT DO_NOT_TRACK "
    "EC_SIDE_CHANNEL_HOST EC_SIDE_CHANNEL_PORT ELASTIC_EP_DRAIN_REQUESTS ENABLE_COHERE_API "
    "ENABLE_CUDAGRAPH_GC ENABLE_CUDA_COMPATIBILITY ENABLE_FLA_PACKED_RECURRENT_DECODE "
    "ENABLE_GEMM_RS ENABLE_HPC_OPS ENABLE_INDUCTOR_COORDINATE_DESCENT_TUNING "
    "ENABLE_INDUCTOR_MAX_AUTOTUNE ENABLE_PREGRAD_PASSES ENABLE_RESPONSES_API_STORE "
    "ENABLE_STARTUP_PLAN ENABLE_V1_MULTIPROCESSING ENFORCE_STRICT_TOOL_CALLING "
    "ENGINE_ITERATION_TIMEOUT_S ENGINE_READY_TIMEOUT_S EXECUTE_MODEL_TIMEOUT_SECONDS "
    "FASTSAFETENSORS_QUEUE_SIZE FLASHINFER_ALLREDUCE_BACKEND "
    "FLASHINFER_ALLREDUCE_FUSION_THRESHOLDS_MB FLASHINFER_AUTOTUNE_CACHE_DIR "
    "FLASHINFER_AUTOTUNE_SKIP_OPS FLASHINFER_MOE_A2A_LOW_PRECISION_COMBINE "
    "FLASHINFER_WORKSPACE_BUFFER_SIZE FLOAT32_MATMUL_PRECISION FORCE_AOT_LOAD GC_DEBUG "
    "GDN_DECODE_KERNEL GPT_OSS_HARMONY_SYSTEM_INSTRUCTIONS GPT_OSS_SYSTEM_TOOL_MCP_LABELS "
    "GPU_NIC_PCIE_MAPPING GPU_SYNC_CHECK HOST_IP HTTP_MAX_REQUEST_BODY_SIZE "
    "HTTP_TIMEOUT_KEEP_ALIVE HUMMING_USE_F16_ACCUM IMAGE_FETCH_TIMEOUT IMAGE_TAG "
    "KEEP_ALIVE_ON_ENGINE_DEATH KIMI_K3_AUX_ATTN_RES_STREAM KIMI_K3_GEMM_AR KIMI_K3_GEMM_RS "
    "KIMI_K3_SHARD_SP_SHARED_EXPERT KV_CACHE_LAYOUT KV_EVENTS_USE_INT_BLOCK_HASHES "
    "KV_OFFLOAD_MAX_BATCH_DESCRIPTORS LOGGING_COLOR LOGGING_CONFIG_PATH LOGGING_LEVEL "
    "LOGGING_PREFIX LOGGING_STREAM LOG_BATCHSIZE_INTERVAL LOG_MODEL_INSPECTION LOG_STATS_INTERVAL "
    "LOOPBACK_IP LORA_DISABLE_PDL LORA_ENABLE_DUAL_STREAM LORA_RESOLVER_CACHE_DIR "
    "LORA_RESOLVER_HF_REPO_LIST MAX_AUDIO_CLIP_FILESIZE_MB MAX_AUDIO_DECODE_BYTES "
    "MAX_AUDIO_DECODE_DURATION_S MAX_AUDIO_PREPROCESS_WORKERS MAX_BAD_WORDS_TOTAL_TOKENS "
    "MAX_COMPLETION_PROMPTS MAX_EMBED_DECODE_BYTES MAX_IMAGE_PIXELS MAX_MEDIA_DOWNLOAD_SIZE_MB "
    "MAX_MEDIA_REQUEST_DECODE_BYTES MAX_MEDIA_REQUEST_DOWNLOAD_SIZE_MB MAX_NUM_BAD_WORDS "
    "MAX_N_SEQUENCES MAX_STOP_STRINGS MEDIA_CACHE MEDIA_CACHE_MAX_SIZE_MB MEDIA_CACHE_TTL_HOURS "
    "MEDIA_CONNECTOR MEDIA_FETCH_MAX_RETRIES MEDIA_LOADING_THREAD_COUNT MEDIA_URL_ALLOW_REDIRECTS "
    "MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS MINIMAX_M3_MSA_CUTLASS_MIN_BATCH MLA_DISABLE "
    "MM_HASHER_ALGORITHM MODEL_REDIRECT_PATH MOONCAKE_ABORT_REQUEST_TIMEOUT "
    "MOONCAKE_BOOTSTRAP_PORT MOONCAKE_CONNECTOR_TIMEOUT MOONCAKE_DISK_STAGING_USABLE_RATIO "
    "MOONCAKE_LOAD_RECV_THREADS MOONCAKE_STORE_TIER_LOG MORIIO_CONNECTOR_READ_MODE "
    "MORIIO_NUM_WORKERS MORIIO_POST_BATCH_SIZE MORIIO_QP_PER_TRANSFER MORIIO_TRANSFER_TIMEOUT_S "
    "MQ_MAX_CHUNK_BYTES_MB MSGPACK_ZERO_COPY_THRESHOLD MULTI_STREAM_GEMM_TOKEN_THRESHOLD "
    "MXFP8_EMULATION_DEQUANT_AT_LOAD NCCL_INCLUDE_PATH NCCL_SO_PATH NIC_SELECTION_VARS "
    "NIXL_EP_MAX_NUM_RANKS NIXL_SIDE_CHANNEL_HOST NIXL_SIDE_CHANNEL_PORT NO_USAGE_STATS "
    "NVTX_SCOPES_FOR_PROFILING OBJECT_STORAGE_SHM_BUFFER_NAME P2P_HANDSHAKE_TIMEOUT_S "
    "P2P_IDLE_TIMEOUT_S P2P_MAX_PEERS P2P_SIDE_CHANNEL_HOST P2P_SIDE_CHANNEL_PORT "
    "PATTERN_MATCH_DEBUG PLE_CPU_OFFLOAD PLUGINS PORT PREFIX_CACHE_RETENTION_INTERVAL "
    "PROCESS_NAME_PREFIX RAISE_ON_LOGIT_NANS RANDOMIZE_DP_DUMMY_INPUTS RAY_BUNDLE_INDICES "
    "RAY_DP_PACK_STRATEGY RAY_DP_PLACEMENT_NODE_IPS RAY_EXTRA_ENV_VARS_TO_COPY "
    "RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY RAY_PER_WORKER_GPUS REGEX_COMPILATION_TIMEOUT_S "
    "REPLICATE_EMBED REQUEST_BODY_LOG_LEVEL RINGBUFFER_WARNING_INTERVAL "
    "ROCM_AITER_MLA_ASM_PADDING ROCM_AITER_MLA_DCP_VERIFY ROCM_AITER_MOE_DISPATCH_POLICY "
    "ROCM_FP8_MFMA_PAGE_ATTN ROCM_FP8_PADDING ROCM_MONO_DECODE "
    "ROCM_QUICK_REDUCE_CAST_BF16_TO_FP16 ROCM_QUICK_REDUCE_MAX_SIZE_BYTES_MB "
    "ROCM_QUICK_REDUCE_MIN_SIZE_BYTES_MB ROCM_QUICK_REDUCE_QUANTIZATION "
    "ROCM_QUICK_REDUCE_QUANTIZATION_MIN_SIZE_KB ROCM_SHUFFLE_KV_CACHE_LAYOUT "
    "ROCM_SLEEP_MEM_CHUNK_SIZE ROCM_USE_AITER_CUSTOM_AR ROCM_USE_AITER_FP4BMM "
    "ROCM_USE_AITER_FP4_ASM_GEMM ROCM_USE_AITER_FP8BMM ROCM_USE_AITER_LINEAR "
    "ROCM_USE_AITER_LINEAR_HIPBMM ROCM_USE_AITER_MHA ROCM_USE_AITER_MLA ROCM_USE_AITER_PAGED_ATTN "
    "ROCM_USE_AITER_RMSNORM ROCM_USE_AITER_TRITON_GEMM ROCM_USE_AITER_TRITON_ROPE "
    "ROCM_USE_AITER_TRITON_SPARSE_MLA ROCM_USE_AITER_UNIFIED_ATTENTION ROCM_USE_SKINNY_GEMM "
    "RPC_BASE_PATH RPC_TIMEOUT RUST_FRONTEND_PATH SERVER_DEV_MODE SKIP_MODEL_NAME_VALIDATION "
    "SKIP_P2P_CHECK SKIP_PRECOMPILED_VERSION_SUFFIX SKIP_VERSION_SUFFIX SNAPSHOT_TIMEOUT_S "
    "SPARSE_INDEXER_MAX_LOGITS_MB SSM_CONV_STATE_LAYOUT STEP5_SHARD_SP_SHARED_EXPERT "
    "SYSTEM_START_DATE TEST_FORCE_FP8_MARLIN TOOL_JSON_ERROR_AUTOMATIC_RETRY "
    "TOOL_PARSE_REGEX_TIMEOUT_SECONDS TPU_BUCKET_PADDING_GAP TPU_MOST_MODEL_LEN TRACE_FUNCTION "
    "TRITON_ATTN_USE_TD TRITON_FORCE_FIRST_CONFIG TRITON_JIT_WARMUP_NUM_THREADS TRITON_USE_TD "
    "TUNED_CONFIG_FOLDER USAGE_SOURCE USAGE_STATS_SERVER USE_AOT_COMPILE USE_BREAKABLE_CUDAGRAPH "
    "USE_BYTECODE_HOOK USE_DEEP_GEMM_TMA_ALIGNED_SCALES USE_DIRECT_DCP_A2A "
    "USE_DIRECT_DCP_KV_GATHER USE_DIRECT_DCP_Q_GATHER USE_EXPERIMENTAL_PARSER_CONTEXT "
    "USE_FASTOKENS USE_FBGEMM USE_FLASHINFER_SAMPLER USE_FUSED_MOE_GROUPED_TOPK USE_LAYERNAME "
    "USE_MEGA_AOT_ARTIFACT USE_MODELSCOPE USE_NCCL_SYMM_MEM USE_OINK_OPS "
    "USE_RAY_COMPILED_DAG_CHANNEL_TYPE USE_RAY_COMPILED_DAG_OVERLAP_COMM "
    "USE_RAY_V2_EXECUTOR_BACKEND USE_RAY_WRAPPED_PP_COMM USE_RUST_BENCH USE_RUST_FRONTEND "
    "USE_SIMPLE_KV_OFFLOAD USE_SPINLOOP_EXT USE_STANDALONE_COMPILE USE_TRITON_AWQ "
    "USE_V2_MODEL_RUNNER V1_OUTPUT_PROC_CHUNK_SIZE V1_USE_OUTLINES_CACHE VIDEO_FETCH_TIMEOUT "
    "VIDEO_LOADER_BACKEND WORKER_MULTIPROC_METHOD WORKER_SHUTDOWN_TIMEOUT_SECONDS "
    "WSL2_ENABLE_PIN_MEMORY XGRAMMAR_CACHE_MB XLA_CACHE_PATH XLA_CHECK_RECOMPILATION "
    "XPU_ENABLE_XPU_GRAPH XPU_FORCE_N_CONTIG_WEIGHT XPU_INC_WNA16_BACKEND XPU_PP_MICROBATCH "
    "XPU_USE_SAMPLER_KERNEL ZENTORCH_WEIGHT_PREPACK ";

// Without their "--".
constexpr std::string_view kServingFlags =
    "aggregate-engine-logging allow-credentials allowed-headers allowed-local-media-path "
    "allowed-media-domains allowed-methods allowed-origins api-server-count aux-output-config "
    "calculate-kv-scales chat-template-content-format code-revision collect-detailed-traces "
    "cpu-distributed-timeout-seconds cudagraph-metrics custom-histogram-buckets "
    "data-parallel-multi-port-external-lb data-parallel-supervisor-port dcp-comm-backend "
    "dcp-kv-cache-interleave-size dcp-q-replicate default-chat-template-kwargs "
    "device-memory-utilization disable-access-log-for-endpoints disable-cascade-attn "
    "disable-chunked-mm-input disable-custom-all-reduce disable-fastapi-docs "
    "disable-hybrid-kv-cache-manager disable-nccl-for-dp-synchronization disable-sliding-window "
    "disable-uvicorn-access-log distributed-timeout-seconds dp-supervisor-probe-failure-threshold "
    "dp-supervisor-probe-interval-s dp-supervisor-probe-timeout-s dp-sync-interval "
    "ec-manager-config ec-transfer-config enable-batch-sharded-sampling enable-bf16x3-router-gemm "
    "enable-cumem-allocator enable-ep-weight-filter enable-flash-late-interaction "
    "enable-flashinfer-autotune enable-force-include-usage enable-layerwise-nvtx-tracing "
    "enable-log-deltas enable-log-outputs enable-log-requests enable-logging-iteration-details "
    "enable-mamba-cache-stochastic-rounding enable-mamba-shared-prefix-checkpoint "
    "enable-mfu-metrics enable-mm-embeds enable-mm-processor-stats enable-nccl-comm-suspend "
    "enable-offline-docs enable-per-request-metrics enable-prompt-embeds "
    "enable-prompt-tokens-details enable-request-id-headers enable-return-routed-experts "
    "enable-server-load-tracking enable-shm-tensor-arena enable-sleep-mode enable-ssl-refresh "
    "enable-tokenizer-info-endpoint enable-trace-replay exclude-tools-when-tool-choice-none "
    "fail-on-environ-validation gdn-prefill-backend grpc h11-max-header-count "
    "h11-max-incomplete-event-size headless hf-token interleave-mm-strings io-processor-plugin "
    "jit-monitor-mode jit-monitor-verbose kda-decode-backend kda-prefill-backend "
    "kv-cache-dtype-skip-layers kv-cache-memory-bytes kv-cache-metrics kv-cache-metrics-sample "
    "kv-events-config kv-offloading-backend kv-offloading-size kv-sharing-fast-prefill "
    "kv-transfer-config language-model-only log-config-file log-error-stack log-level "
    "logging-config logits-processors logprobs-mode long-prefill-token-threshold "
    "long-prefill-token-threshold-adaptive mamba-backend mamba-block-size mamba-cache-dtype "
    "mamba-cache-mode mamba-cache-philox-rounds mamba-config mamba-ssm-cache-dtype "
    "mamba-ssu-algorithm max-cudagraph-capture-size max-log-len max-logprobs "
    "max-long-partial-prefills max-num-active-seqs max-num-batched-tokens "
    "max-num-partial-prefills max-num-queued-reqs max-num-queued-tokens max-num-scheduled-tokens "
    "media-io-kwargs middleware mm-device-do-normalize mm-encoder-attn-backend "
    "mm-encoder-attn-dtype mm-encoder-fp8-scale-path mm-encoder-fp8-scale-save-margin "
    "mm-encoder-fp8-scale-save-path mm-encoder-only mm-encoder-tp-mode mm-hasher-algorithm "
    "mm-ipc-gpu-memory-gb mm-processor-cache-gb mm-processor-cache-type mm-processor-device "
    "mm-processor-kwargs mm-shm-cache-max-object-size-mb mm-tensor-ipc num-gpu-blocks-override "
    "numa-bind numa-bind-cpus numa-bind-nodes otlp-traces-endpoint override-generation-config "
    "per-request-spec-decode-metrics pooler-config prefill-schedule-interval "
    "prefix-cache-retention-interval prefix-caching-hash-algo prefix-match-unit profiler-config "
    "ray-workers-use-nsight reasoning-config reasoning-parser-plugin renderer-num-workers "
    "replayssm-buffer-len response-role return-sampling-mask return-tokens-as-token-ids root-path "
    "scheduler-reserve-full-isl show-hidden-metrics-for-version shutdown-timeout "
    "skip-mm-profiling skip-tokenizer-init sleep-mode-backend sleep-mode-offload-cudagraph "
    "sleep-preserve-parameter-names sparse-indexer-topk-backend ssl-ca-certs ssl-cert-reqs "
    "ssl-certfile ssl-ciphers ssl-keyfile stream-interval structured-outputs-config "
    "swa-bounded-replay tokenizer-mode tokenizer-revision tokens-only tool-parser-plugin "
    "tool-server trust-request-chat-template uds use-fp64-gumbel use-replayssm uvicorn-log-level "
    "video-pruning-method video-pruning-rate watchdog-config watermark watermark-config ";

// Whether `list` has the word, between two blanks or at its beginning.
bool has_word(std::string_view list, std::string_view word) {
  if (word.empty() || word.find(' ') != std::string_view::npos) return false;
  for (size_t at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1)) {
    const bool begins = at == 0 || list[at - 1] == ' ';
    if (begins && list[at + word.size()] == ' ') return true;
  }
  return false;
}

bool has_name(std::string_view list, std::string_view prefix, std::string_view name) {
  return name.starts_with(prefix) && has_word(list, name.substr(prefix.size()));
}

}  // namespace

bool is_serving_variable(std::string_view name) {
  return has_name(kServingVariables, "VLLM_", name);
}

bool is_serving_flag(std::string_view name) { return has_name(kServingFlags, "--", name); }

}  // namespace mxfp4
