# fish completion for mxfp4-repack(1). tests/cli/flags.sh compares it with --help and the man page.

set -l commands convert inspect explain verify fits diff unpack finalize list completion
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -f
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a convert -d 'Repack a checkpoint for one backend'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a inspect -d 'Show what is in a checkpoint or a blob'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a explain -d 'Say which backend a deployment gets, and why'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a verify -d 'Check a blob'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a fits -d 'Say whether a blob fits a release and a machine'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a diff -d 'Compare two blobs'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a unpack -d 'Give back the loaded layout'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a finalize -d 'Finish a blob made in shards'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a list -d 'Show the tables'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a completion -d 'Print a completion script'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -s V -l version -d 'Show the version'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -s h -d 'Show examples and flags'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -l help -d 'Show help'
set -l tables backends knobs layouts libraries machines revisions styles variables
complete -c mxfp4-repack -n "__fish_seen_subcommand_from list; and not __fish_seen_subcommand_from $tables" -f -a "$tables"
for table in $tables
    complete -c mxfp4-repack -n "__fish_seen_subcommand_from list; and __fish_seen_subcommand_from $table" -f -a "(mxfp4-repack list $table --json 2>/dev/null | sed -nE '/^ {4}\{/{n;s/.*: \"([^\"]*)\".*/\\1/p}' | sort -u)"
end
complete -c mxfp4-repack -n "__fish_seen_subcommand_from completion" -f -a 'bash fish zsh'

# Every command
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify fits diff unpack finalize list completion" -s h -d 'Show examples and flags'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify fits diff unpack finalize list completion" -l help -d 'Show help'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify fits diff unpack finalize list" -l json -d 'One JSON document on stdout'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify fits diff unpack finalize list" -l progress -x -a 'auto always never' -d 'When to draw a progress bar'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify fits diff unpack finalize list" -l color -x -a 'auto always never' -d 'When to use colour'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify fits diff unpack finalize list" -s v -d 'Say more'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify fits diff unpack finalize list" -s q -l quiet -d 'Say only what goes wrong'

# The machine that will serve
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l arch -x -a 'sm80 sm89 sm90 sm100 sm103 sm120 gfx942 gfx950 x86_64 A100 L40S H100 H200 B200 B300 GB200 MI300X MI325X MI355X' -d 'GPU or CPU architecture'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l platform -x -a 'cuda rocm xpu cpu other' -d 'Follows from --arch where it can'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l target -r -F -d 'Facts of the machine as JSON'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l moe-backend -x -a 'auto deep_gemm flashinfer_trtllm flashinfer_trtllm_afp8 flashinfer_cutlass flashinfer_cutlass_afp8 triton triton_unfused humming marlin aiter aiter_mxfp4_fp8 aiter_mxfp4_mxfp4 aiter_triton_mxfp4_bf16 aiter_triton_mxfp4_mxfp4 b12x flashinfer_moe_ep_cutedsl flashinfer_moe_ep_mega_deep_gemm xpu cpu emulation' -d "The engine's --moe-backend"
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l moe-runner-backend -x -a 'auto triton_kernel flashinfer_mxfp4 marlin deep_gemm humming' -d "SGLang's --moe-runner-backend"
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l backend -x -a 'AITER_MEGA_MOE AITER_TRITON_MXFP4_BF16 AITER_TRITON_MXFP4_MXFP4 B12X_MXFP4_BF16 B12X_MXFP4_MXFP8 CUTLASS_MXFP4_MXFP4 DEEP_GEMM_MEGA_MOE FLASHINFER_MOE_EP_CUTEDSL FLASHINFER_MOE_EP_DEEP_GEMM AITER_MXFP4_BF16 AITER_MXFP4_FP8 AITER_MXFP4_MXFP4 BATCHED_MARLIN CPU DEEPGEMM_MXFP4 EMULATION FLASHINFER_CUTLASS_MXFP4_BF16 FLASHINFER_CUTLASS_MXFP4_MXFP8 FLASHINFER_TRTLLM_MXFP4_BF16 FLASHINFER_TRTLLM_MXFP4_MXFP8 HUMMING MARLIN NONE TRITON TRITON_UNFUSED XPU' -d 'Skip the oracle'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l family -x -a 'gpt_oss generic' -d 'Converter family'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l selector -x -a 'gpt_oss deepseek_v4' -d 'Selection function'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l quantization-config -r -F -d 'Override object, or its file'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l libs -x -a '(__fish_complete_list , "string split \" \" \"aiter b12x deep_gemm flashinfer flashinfer_cutlass flashinfer_situ humming quark triton_kernels\"")' -d 'Kernel packages there'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l no-lib -x -a 'aiter b12x deep_gemm flashinfer flashinfer_cutlass flashinfer_situ humming quark triton_kernels' -d 'This package is not there'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l activation -x -a 'silu gelu gelu_tanh relu2 swigluoai situ swigluoai_uninterleave swiglustep silu_no_mul gelu_no_mul gelu_tanh_no_mul relu2_no_mul' -d 'Activation of the experts'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l routing-method -x -a 'Default Renormalize DeepSeekV3 Llama4 RenormalizeNaive TopK SigmoidRenorm MiniMax2 Sigmoid Unspecified DeepseekV4 Custom Simulated' -d 'Routing method'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l env -x -a 'AITER_FORCE_A8W4= AITER_SITUV2_A4W4= AITER_SITUV2_A8W4= SGLANG_DSV4_FP4_DEQUANT= SGLANG_MXFP4_USE_OFFICIAL_SHUFFLE= SGLANG_USE_AITER= SGLANG_USE_AITER_MOE_GU_ITLV= VLLM_B12X_MOE_FP4_FORCE_A16= VLLM_BATCH_INVARIANT= VLLM_HUMMING_INPUT_QUANT_CONFIG= VLLM_HUMMING_MOE_GEMM_TYPE= VLLM_MARLIN_INPUT_DTYPE= VLLM_MOE_ROUTING_SIMULATION_STRATEGY= VLLM_MXFP4_USE_MARLIN= VLLM_ROCM_USE_AITER= VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS= VLLM_ROCM_USE_AITER_MOE= VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4= VLLM_ROCM_USE_AITER_MOE_SITUV2= VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4= VLLM_USE_DEEP_GEMM= VLLM_USE_FLASHINFER_MOE_MXFP4_BF16= VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8= VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS=' -d 'NAME=VALUE of the serving process'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l knob -x -a 'params_dtype= marlin_input_dtype= humming_input_dtype= cuda_compiler= aiter_weight= tp_size=' -d 'Layout parameter'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l pad -x -a 'auto none 3072x2944' -d 'Round sizes, or not, or to these'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits list" -l engine -x -a 'vllm sglang' -d 'Engine that serves'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits list" -l revision -x -d 'Release of the engine that serves'

# Parallelism
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l tp-size -x -d 'Tensor parallel size'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l dp-size -x -d 'Data parallel size'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l pcp-size -x -d 'Prefill context parallel size'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l all2all-backend -x -a 'allgather_reducescatter deepep_high_throughput deepep_low_latency deepep_v2 mori_high_throughput mori_low_latency moonep nixl_ep flashinfer_all2allv flashinfer_nvlink_two_sided flashinfer_nvlink_one_sided passthrough' -d 'All-to-all kernels'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l moe-a2a-backend -x -a 'none deepep mooncake nixl mori flashinfer megamoe' -d "SGLang's all-to-all kernels"
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l enable-expert-parallel -d 'Split by experts'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l enable-eplb -d 'Expert load balancing'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l num-redundant-experts -x -d 'Experts beyond the number in the model'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain fits" -l sequence-parallel -d 'Sequence parallel MoE'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l enable-lora -d 'LoRA adapters'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l expert-placement -x -a 'linear round_robin' -d 'Which experts a rank holds'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l rank -x -d "Only this rank's blob"

# Input
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l layers -x -d 'Only these layers'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify" -l style -x -a 'gpt_oss gpt_oss_original deepseek_v4 quark compressed_tensors mxfp4 loaded' -d 'Naming style'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify" -l model-config -r -F -d 'config.json of the input'

# One command or two
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert" -l compress -x -a 'zstd none' -d 'Seekable zstd, or plain'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert" -l level -x -d 'how hard to compress'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert" -l emit -x -a 'packed loaded' -d 'Where to stop'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l allow-known-defects -d 'Accept bytes known to be wrong'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l allow-unservable -d 'Write what the engine would not serve'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert" -l include-rest -d 'Write a whole model directory'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert" -s n -l dry-run -d 'Plan only'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert" -l shard -x -a 'auto' -d 'I/N: one share of the layers'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert" -l resume -d 'Keep complete layers'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert" -l check -d 'With --resume, read every byte'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert unpack finalize" -l read-back -d 'Read again what the device holds'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert unpack" -s o -l output -r -F -d 'Directory to write'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert unpack" -s f -l force -d 'Replace an earlier result'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from unpack" -l as-published -d 'Names and shards of the checkpoint'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from verify" -l against -r -F -d 'Checkpoint to compare with'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from verify" -l some-ranks -d 'Ranks may be missing'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from verify" -l direct -d 'Read what the device holds'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from explain" -l against -x -d 'What another revision decides differently'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from inspect" -l serve -d 'Of a blob, print only the engine\'s command that serves it'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from inspect" -l tensors -d 'List the tensors of all layers'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from inspect" -l layer -x -d 'List the tensors of this layer'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from explain" -l batch -r -F -d 'Answer JSON lines'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert verify unpack finalize" -s j -l threads -x -d 'Workers'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert verify unpack finalize" -l memory -x -a '256MiB 1GiB 4GiB 0.5GiB 8GB' -d 'Budget for buffers'
