# fish completion for mxfp4-repack(1). tests/cli/flags.sh compares it with --help and the man page.

set -l commands convert inspect explain verify diff unpack finalize list
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -f
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a convert -d 'Repack a checkpoint for one backend'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a inspect -d 'Show what is in a checkpoint or a blob'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a explain -d 'Say which backend a deployment gets, and why'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a verify -d 'Check a blob'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a diff -d 'Compare two blobs'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a unpack -d 'Give back the loaded layout'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a finalize -d 'Finish a blob made in shards'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -a list -d 'Show the tables'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -s V -l version -d 'Show the version'
complete -c mxfp4-repack -n "not __fish_seen_subcommand_from $commands" -s h -l help -d 'Show help'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from list" -f -a 'backends layouts machines revisions styles'

# Every command
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify diff unpack finalize list" -s h -l help -d 'Show help'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify diff unpack finalize list" -l json -d 'One JSON document on stdout'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify diff unpack finalize list" -l progress -x -a 'auto always never' -d 'When to draw a progress bar'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify diff unpack finalize list" -l color -x -a 'auto always never' -d 'When to use colour'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify diff unpack finalize list" -s v -d 'Say more'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain verify diff unpack finalize list" -s q -l quiet -d 'Say only what goes wrong'

# The machine that will serve
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l arch -x -a 'sm80 sm89 sm90 sm100 sm103 sm120 gfx942 gfx950 x86_64' -d 'GPU or CPU architecture'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l platform -x -a 'cuda rocm xpu cpu other' -d 'Follows from --arch where it can'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l target -r -F -d 'Facts of the machine as JSON'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l moe-backend -x -a 'auto deep_gemm flashinfer_trtllm flashinfer_trtllm_afp8 flashinfer_cutlass flashinfer_cutlass_afp8 triton triton_unfused humming marlin aiter aiter_mxfp4_fp8 aiter_mxfp4_mxfp4 aiter_triton_mxfp4_bf16 aiter_triton_mxfp4_mxfp4 b12x flashinfer_moe_ep_cutedsl flashinfer_moe_ep_mega_deep_gemm xpu cpu emulation' -d "The engine's --moe-backend"
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l backend -x -a 'AITER_TRITON_MXFP4_BF16 AITER_TRITON_MXFP4_MXFP4 B12X_MXFP4_BF16 B12X_MXFP4_MXFP8 CUTLASS_MXFP4_MXFP4 FLASHINFER_MOE_EP_CUTEDSL FLASHINFER_MOE_EP_DEEP_GEMM AITER_MXFP4_BF16 AITER_MXFP4_FP8 AITER_MXFP4_MXFP4 BATCHED_MARLIN CPU DEEPGEMM_MXFP4 EMULATION FLASHINFER_CUTLASS_MXFP4_BF16 FLASHINFER_CUTLASS_MXFP4_MXFP8 FLASHINFER_TRTLLM_MXFP4_BF16 FLASHINFER_TRTLLM_MXFP4_MXFP8 HUMMING MARLIN NONE TRITON TRITON_UNFUSED XPU' -d 'Skip the oracle'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l family -x -a 'gpt_oss generic' -d 'Converter family'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l selector -x -a 'gpt_oss deepseek_v4' -d 'Selection function'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l quantization-config -r -F -d 'Override object, or its file'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l libs -x -a '(__fish_complete_list , "string split \" \" \"aiter b12x deep_gemm flashinfer flashinfer_cutlass flashinfer_situ humming quark triton_kernels\"")' -d 'Kernel packages there'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l no-lib -x -a 'aiter b12x deep_gemm flashinfer flashinfer_cutlass flashinfer_situ humming quark triton_kernels' -d 'This package is not there'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l activation -x -a 'silu gelu gelu_tanh relu2 swigluoai swiglustep silu_no_mul gelu_no_mul gelu_tanh_no_mul relu2_no_mul' -d 'Activation of the experts'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l routing-method -x -a 'Default Renormalize DeepSeekV3 Llama4 RenormalizeNaive TopK SigmoidRenorm MiniMax2 Unspecified DeepseekV4 Custom Simulated' -d 'Routing method'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l env -x -d 'NAME=VALUE of the serving process'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l knob -x -a 'params_dtype= marlin_input_dtype= humming_input_dtype= cuda_compiler= aiter_weight= tp_size=' -d 'Layout parameter'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l pad -x -a 'auto none' -d 'Round sizes, or not'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain list" -l revision -x -d 'vLLM release that serves'

# Parallelism
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l tp-size -x -d 'Tensor parallel size'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l dp-size -x -d 'Data parallel size'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l pcp-size -x -d 'Prefill context parallel size'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l all2all-backend -x -a 'allgather_reducescatter deepep_high_throughput deepep_low_latency mori nixl_ep flashinfer_all2allv flashinfer_nvlink_two_sided flashinfer_nvlink_one_sided' -d 'All-to-all kernels'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l enable-expert-parallel -d 'Split by experts'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l enable-eplb -d 'Expert load balancing'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert inspect explain" -l sequence-parallel -d 'Sequence parallel MoE'
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
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert finalize" -l model-card -d 'README.md for a model hub'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert" -s n -l dry-run -d 'Plan only'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert" -l shard -x -a 'auto' -d 'I/N: one share of the layers'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert" -l resume -d 'Keep complete layers'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert" -l check -d 'With --resume, read every byte'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert unpack" -s o -l output -r -F -d 'Directory to write'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert unpack" -s f -l force -d 'Replace an earlier result'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from verify" -l against -r -F -d 'Checkpoint to compare with'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from explain" -l against -x -d 'What another revision decides differently'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from explain" -l history -d 'Every release: backend, sizes, blobs'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from explain" -l all -d 'Every backend and how to get it'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from inspect" -l tensors -d 'List the tensors of all layers'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from inspect" -l layer -x -d 'List the tensors of this layer'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from inspect" -l html -r -F -d 'Page to write'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from explain" -l batch -r -F -d 'Answer JSON lines'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert verify diff unpack finalize" -s j -l threads -x -d 'Workers'
complete -c mxfp4-repack -n "__fish_seen_subcommand_from convert verify diff unpack finalize" -l memory -x -a '256MiB 1GiB 4GiB' -d 'Budget for buffers'
