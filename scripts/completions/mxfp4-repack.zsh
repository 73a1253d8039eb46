#compdef mxfp4-repack
# zsh completion for mxfp4-repack(1). tests/cli/flags.sh compares it with --help and the man page.

# The names in a table of list: a row's first member.
_mxfp4_repack_rows() {
  compadd -- ${(f)"$(mxfp4-repack list $line[1] --json 2>/dev/null |
    sed -nE '/^ {4}\{/{n;s/.*: "([^"]*)".*/\1/p}' | sort -u)"}
}

_mxfp4_repack() {
  local -a every deployment machine resources commands
  commands=(
    'convert:repack a checkpoint for one backend'
    'inspect:show what is in a checkpoint or a blob'
    'explain:say which backend a deployment gets, and why'
    'verify:check a blob'
    'fits:say whether a blob fits a release and a machine'
    'diff:compare two blobs'
    'unpack:give back the loaded layout'
    'finalize:finish a blob made in shards'
    'list:show the tables'
    'completion:print a completion script'
  )
  every=(
    '-h[show examples and flags]'
    '--help[show help]'
    '--json[one JSON document on stdout]'
    '--progress=[when to draw a progress bar]:when:(auto always never)'
    '--color=[when to use colour]:when:(auto always never)'
    '-v[say more]'
    '(-q --quiet)'{-q,--quiet}'[say only what goes wrong]'
  )
  deployment=(
    '--engine=[engine that serves]:engine:(vllm sglang)'
    '--revision=[release of the engine that serves]:revision: '
    '--target=[facts of the machine as JSON]:file:_files'
    '--arch=[GPU or CPU architecture]:architecture:(sm80 sm89 sm90 sm100 sm103 sm120 gfx942 gfx950 x86_64 A100 L40S H100 H200 B200 B300 GB200 MI300X MI325X MI355X)'
    '--platform=[follows from --arch where it can]:platform:(cuda rocm xpu cpu other)'
    '--moe-backend=[the option of the engine]:backend:(auto deep_gemm flashinfer_trtllm flashinfer_trtllm_afp8 flashinfer_cutlass flashinfer_cutlass_afp8 triton triton_unfused humming marlin aiter aiter_mxfp4_fp8 aiter_mxfp4_mxfp4 aiter_triton_mxfp4_bf16 aiter_triton_mxfp4_mxfp4 b12x flashinfer_moe_ep_cutedsl flashinfer_moe_ep_mega_deep_gemm xpu cpu emulation)'
    '--moe-runner-backend=[the same, as SGLang calls it]:backend:(auto triton_kernel flashinfer_mxfp4 marlin deep_gemm humming)'
    '--libs=[kernel packages there]:packages:_values -s , package aiter b12x deep_gemm flashinfer flashinfer_cutlass flashinfer_situ humming quark triton_kernels'
    '*--env=[NAME=VALUE of the serving process]:variable:(AITER_FORCE_A8W4= AITER_SITUV2_A4W4= AITER_SITUV2_A8W4= SGLANG_DSV4_FP4_DEQUANT= SGLANG_MXFP4_USE_OFFICIAL_SHUFFLE= SGLANG_USE_AITER= SGLANG_USE_AITER_MOE_GU_ITLV= VLLM_B12X_MOE_FP4_FORCE_A16= VLLM_BATCH_INVARIANT= VLLM_HUMMING_INPUT_QUANT_CONFIG= VLLM_HUMMING_MOE_GEMM_TYPE= VLLM_MARLIN_INPUT_DTYPE= VLLM_MOE_ROUTING_SIMULATION_STRATEGY= VLLM_MXFP4_USE_MARLIN= VLLM_ROCM_USE_AITER= VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS= VLLM_ROCM_USE_AITER_MOE= VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4= VLLM_ROCM_USE_AITER_MOE_SITUV2= VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4= VLLM_USE_DEEP_GEMM= VLLM_USE_FLASHINFER_MOE_MXFP4_BF16= VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8= VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS=)'
    '--tp-size=[tensor parallel size]:size: '
    '--pcp-size=[prefill context parallel size]:size: '
    '--dp-size=[data parallel size]:size: '
    '--enable-expert-parallel[split by experts]'
    '--all2all-backend=[all-to-all kernels]:backend:(allgather_reducescatter deepep_high_throughput deepep_low_latency deepep_v2 mori_high_throughput mori_low_latency moonep nixl_ep flashinfer_all2allv flashinfer_nvlink_two_sided flashinfer_nvlink_one_sided passthrough)'
    '--moe-a2a-backend=[the same, as SGLang calls it]:backend:(none deepep mooncake nixl mori flashinfer megamoe)'
    '--enable-eplb[expert load balancing]'
    '--num-redundant-experts=[experts beyond the number in the model]:number: '
    '--sequence-parallel[sequence parallel MoE]'
  )
  machine=(
    '--backend=[skip the oracle]:backend:(AITER_MEGA_MOE AITER_TRITON_MXFP4_BF16 AITER_TRITON_MXFP4_MXFP4 B12X_MXFP4_BF16 B12X_MXFP4_MXFP8 CUTLASS_MXFP4_MXFP4 DEEP_GEMM_MEGA_MOE FLASHINFER_MOE_EP_CUTEDSL FLASHINFER_MOE_EP_DEEP_GEMM AITER_MXFP4_BF16 AITER_MXFP4_FP8 AITER_MXFP4_MXFP4 BATCHED_MARLIN CPU DEEPGEMM_MXFP4 EMULATION FLASHINFER_CUTLASS_MXFP4_BF16 FLASHINFER_CUTLASS_MXFP4_MXFP8 FLASHINFER_TRTLLM_MXFP4_BF16 FLASHINFER_TRTLLM_MXFP4_MXFP8 HUMMING MARLIN NONE TRITON TRITON_UNFUSED XPU)'
    '--family=[converter family]:family:(gpt_oss generic)'
    '--selector=[selection function]:selector:(gpt_oss deepseek_v4)'
    '--quantization-config=[override object, or its file]:file:_files'
    '*--no-lib=[this package is not there]:package:(aiter b12x deep_gemm flashinfer flashinfer_cutlass flashinfer_situ humming quark triton_kernels)'
    '--activation=[activation of the experts]:activation:(silu gelu gelu_tanh relu2 swigluoai situ swigluoai_uninterleave swiglustep silu_no_mul gelu_no_mul gelu_tanh_no_mul relu2_no_mul)'
    '--routing-method=[routing method]:method:(Default Renormalize DeepSeekV3 Llama4 RenormalizeNaive TopK SigmoidRenorm MiniMax2 Sigmoid Unspecified DeepseekV4 Custom Simulated)'
    '*--knob=[layout parameter]:parameter:(params_dtype= marlin_input_dtype= humming_input_dtype= cuda_compiler= aiter_weight= tp_size=)'
    '--pad=[round sizes, or not, or to these]:padding:(auto none 3072x2944)'
    '--allow-known-defects[accept bytes known to be wrong]'
    '--allow-unservable[write what the engine would not serve]'
    '--enable-lora[LoRA adapters]'
    '--expert-placement=[which experts a rank holds]:placement:(linear round_robin)'
    '--rank=[only the blob of this rank]:rank: '
    '--layers=[only these layers]:layers: '
    '--style=[naming style]:style:(gpt_oss gpt_oss_original deepseek_v4 quark compressed_tensors mxfp4 loaded)'
    '--model-config=[config.json of the input]:file:_files'
  )
  resources=(
    '(-j --threads)'{-j,--threads=}'[workers]:number: '
    '--memory=[budget for buffers]:size:(256MiB 1GiB 4GiB 0.5GiB 8GB)'
  )

  local curcontext=$curcontext state line
  _arguments -C \
    '-h[show examples and flags]' \
    '--help[show help]' \
    '(-V --version)'{-V,--version}'[show the version]' \
    '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      curcontext=${curcontext%:*:*}:mxfp4-repack-$line[1]:
      case $line[1] in
        convert)
          _arguments $every $deployment $machine $resources \
            '(-o --output)'{-o,--output=}'[directory to write]:directory:_directories' \
            '--compress=[seekable zstd, or plain]:method:(zstd none)' \
            '--level=[how hard to compress]:level: ' \
            '--emit=[where to stop]:stage:(packed loaded)' \
            '--include-rest[write a whole model directory]' \
            '(-n --dry-run)'{-n,--dry-run}'[plan only]' \
            '--shard=[one share of the layers]:share (I/N, auto/N):(auto)' \
            '--resume[keep complete layers]' \
            '--check[with --resume, read every byte]' \
            '--read-back[read again what the device holds]' \
            '(-f --force)'{-f,--force}'[replace an earlier result]' \
            '1:checkpoint:_files' ;;
        inspect)
          _arguments $every $deployment $machine \
            '--serve[of a blob, print only the command that serves it]' \
            '--tensors[list the tensors of all layers]' \
            '--layer=[list the tensors of this layer]:layer: ' \
            '1:checkpoint or blob:_files' ;;
        explain)
          _arguments $every $deployment $machine \
            '--against=[what another revision decides differently]:revision:' \
            '--batch=[answer JSON lines]:file:_files' \
            '1:checkpoint:_files' ;;
        verify)
          _arguments $every $resources \
            '--against=[checkpoint to compare with]:checkpoint:_files' \
            '--style=[naming style]:style:(gpt_oss gpt_oss_original deepseek_v4 quark compressed_tensors mxfp4 loaded)' \
            '--model-config=[config.json of the checkpoint]:file:_files' \
            '--some-ranks[ranks may be missing]' \
            '--direct[read what the device holds]' \
            '1:blob:_directories' ;;
        fits) _arguments $every $deployment '1:blob:_directories' ;;
        diff) _arguments $every '1:blob:_directories' '2:blob:_directories' ;;
        unpack)
          _arguments $every $resources \
            '(-o --output)'{-o,--output=}'[directory to write]:directory:_directories' \
            '--as-published[the names and shards of the checkpoint]' \
            '--read-back[read again what the device holds]' \
            '(-f --force)'{-f,--force}'[replace an earlier result]' \
            '1:blob:_directories' ;;
        finalize)
          _arguments $every $resources \
            '--read-back[check what the device holds]' \
            '1:blob:_directories' ;;
        list)
          _arguments $every \
            '--engine=[engine that serves]:engine:(vllm sglang)' \
            '--revision=[release of the engine]:revision: ' \
            '1:table:(backends knobs layouts libraries machines revisions styles variables)' \
            '2:row:_mxfp4_repack_rows' ;;
        completion)
          _arguments '-h[show examples and flags]' '--help[show help]' '1:shell:(bash fish zsh)' ;;
      esac ;;
  esac
}

_mxfp4_repack "$@"
