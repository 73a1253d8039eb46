# bash completion for mxfp4-repack(1). tests/cli/flags.sh compares it with --help and the man page.

# Values of a flag; returns 1 where there is nothing to propose but the flag takes a value, 2 for
# files, 3 when it takes none.
_mxfp4_repack_values() {
  case $1 in
    --arch) echo sm80 sm89 sm90 sm100 sm103 sm120 gfx942 gfx950 x86_64 A100 L40S H100 H200 B200 B300 GB200 MI300X MI325X MI355X ;;
    --platform) echo cuda rocm xpu cpu other ;;
    --engine) echo vllm sglang ;;
    --moe-runner-backend) echo auto triton_kernel flashinfer_mxfp4 marlin deep_gemm humming ;;
    --moe-a2a-backend) echo none deepep mooncake nixl mori flashinfer megamoe ;;
    --moe-backend)
      echo auto deep_gemm flashinfer_trtllm flashinfer_trtllm_afp8 flashinfer_cutlass \
        flashinfer_cutlass_afp8 triton triton_unfused humming marlin aiter aiter_mxfp4_fp8 \
        aiter_mxfp4_mxfp4 aiter_triton_mxfp4_bf16 aiter_triton_mxfp4_mxfp4 b12x \
        flashinfer_moe_ep_cutedsl flashinfer_moe_ep_mega_deep_gemm xpu cpu emulation ;;
    --backend)
      echo AITER_MEGA_MOE AITER_TRITON_MXFP4_BF16 AITER_TRITON_MXFP4_MXFP4 B12X_MXFP4_BF16 B12X_MXFP4_MXFP8 CUTLASS_MXFP4_MXFP4 DEEP_GEMM_MEGA_MOE FLASHINFER_MOE_EP_CUTEDSL FLASHINFER_MOE_EP_DEEP_GEMM AITER_MXFP4_BF16 AITER_MXFP4_FP8 AITER_MXFP4_MXFP4 BATCHED_MARLIN CPU DEEPGEMM_MXFP4 \
        EMULATION FLASHINFER_CUTLASS_MXFP4_BF16 FLASHINFER_CUTLASS_MXFP4_MXFP8 \
        FLASHINFER_TRTLLM_MXFP4_BF16 FLASHINFER_TRTLLM_MXFP4_MXFP8 HUMMING MARLIN NONE TRITON \
        TRITON_UNFUSED XPU ;;
    --family) echo gpt_oss generic ;;
    --selector) echo gpt_oss deepseek_v4 ;;
    --libs | --no-lib) echo aiter b12x deep_gemm flashinfer flashinfer_cutlass flashinfer_situ humming quark triton_kernels ;;
    --activation)
      echo silu gelu gelu_tanh relu2 swigluoai situ swigluoai_uninterleave swiglustep silu_no_mul \
        gelu_no_mul gelu_tanh_no_mul relu2_no_mul ;;
    --routing-method)
      echo Default Renormalize DeepSeekV3 Llama4 RenormalizeNaive TopK SigmoidRenorm MiniMax2 Sigmoid \
        Unspecified DeepseekV4 Custom Simulated ;;
    --all2all-backend)
      echo allgather_reducescatter deepep_high_throughput deepep_low_latency deepep_v2 \
        mori_high_throughput mori_low_latency moonep nixl_ep flashinfer_all2allv \
        flashinfer_nvlink_two_sided flashinfer_nvlink_one_sided passthrough ;;
    --knob) echo params_dtype= marlin_input_dtype= humming_input_dtype= cuda_compiler= aiter_weight= tp_size= ;;
    --pad) echo auto none 3072x2944 ;;
    --revision) echo "$(mxfp4-repack list revisions --json 2>/dev/null |
      sed -n 's/.*"revision": "\([^" ]*\).*/\1/p')" ;;
    --expert-placement) echo linear round_robin ;;
    --style)
      echo gpt_oss gpt_oss_original deepseek_v4 quark compressed_tensors mxfp4 loaded ;;
    --compress) echo zstd none ;;
    --emit) echo packed loaded ;;
    --shard) echo auto ;;
    --progress | --color) echo auto always never ;;
    --memory) echo 256MiB 1GiB 4GiB 0.5GiB 8GB ;;
    --env) echo AITER_FORCE_A8W4= AITER_SITUV2_A4W4= AITER_SITUV2_A8W4= SGLANG_DSV4_FP4_DEQUANT= SGLANG_MXFP4_USE_OFFICIAL_SHUFFLE= SGLANG_USE_AITER= SGLANG_USE_AITER_MOE_GU_ITLV= VLLM_B12X_MOE_FP4_FORCE_A16= VLLM_BATCH_INVARIANT= VLLM_HUMMING_INPUT_QUANT_CONFIG= VLLM_HUMMING_MOE_GEMM_TYPE= VLLM_MARLIN_INPUT_DTYPE= VLLM_MOE_ROUTING_SIMULATION_STRATEGY= VLLM_MXFP4_USE_MARLIN= VLLM_ROCM_USE_AITER= VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS= VLLM_ROCM_USE_AITER_MOE= VLLM_ROCM_USE_AITER_MOE_A4W4_DSV4= VLLM_ROCM_USE_AITER_MOE_SITUV2= VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4= VLLM_USE_DEEP_GEMM= VLLM_USE_FLASHINFER_MOE_MXFP4_BF16= VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8= VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS= ;;
    --num-redundant-experts | --tp-size | --dp-size | --pcp-size | --rank | --layers | --layer | --level | -j | --threads) return 1 ;;
    --target | --quantization-config | --model-config | --against | --batch | -o | --output)
      return 2 ;;
    *) return 3 ;;
  esac
}

# A command's flags; without a command, the program's flags.
_mxfp4_repack_flags() {
  local every='--help --json --progress --color -v --quiet'
  local machine='--arch --platform --target --moe-backend --moe-runner-backend --backend --family --selector
    --quantization-config --libs --no-lib --activation --routing-method --env --knob --pad
    --engine --revision --tp-size --dp-size --pcp-size --all2all-backend --moe-a2a-backend --enable-expert-parallel
    --enable-eplb --num-redundant-experts --sequence-parallel --enable-lora --expert-placement --rank --style
    --model-config --layers --allow-known-defects --allow-unservable'
  local resources='--threads --memory'
  case $1 in
    convert)
      echo $every $machine $resources --output --compress --level --emit \
        --include-rest --dry-run --shard --resume --check --read-back --force ;;
    inspect) echo $every $machine --serve --tensors --layer ;;
    explain) echo $every $machine --against --batch ;;
    verify) echo $every $resources --against --style --model-config --some-ranks --direct ;;
    fits)
      echo $every --engine --revision --target --arch --platform --moe-backend --moe-runner-backend --libs --env --tp-size --pcp-size --dp-size \
        --enable-expert-parallel --all2all-backend --moe-a2a-backend --enable-eplb --num-redundant-experts --sequence-parallel ;;
    diff) echo $every ;;
    unpack) echo $every $resources --output --as-published --read-back --force ;;
    finalize) echo $every $resources --read-back ;;
    list) echo $every --engine --revision ;;
    completion) echo --help ;;
    *) echo --help --version ;;
  esac
}

# What compgen gives for these arguments, one proposal a line.
_mxfp4_repack_propose() {
  mapfile -t COMPREPLY <<<"$(compgen "$@")"
  [[ -n ${COMPREPLY[0]} ]] || COMPREPLY=()
}

_mxfp4_repack() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local commands='convert inspect explain verify fits diff unpack finalize list completion' command='' i values status
  local tables='backends knobs layouts libraries machines revisions styles variables'
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ " $commands " == *" ${COMP_WORDS[i]} "* ]]; then
      command=${COMP_WORDS[i]}
      break
    fi
  done
  # readline takes --flag=value apart.
  if [[ $current == '=' ]]; then
    current=''
  elif [[ $previous == '=' ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  # What explain compares is another release; what verify compares is a checkpoint.
  if [[ $command == explain && $previous == --against ]]; then previous=--revision; fi
  values=$(_mxfp4_repack_values "$previous")
  status=$?
  if ((status == 0)); then
    # A list keeps what is before the last comma.
    local head=''
    if [[ $previous == --libs && $current == *,* ]]; then
      head=${current%,*},
      current=${current##*,}
    fi
    _mxfp4_repack_propose -P "$head" -W "$values" -- "$current"
    if [[ $previous == --knob || $previous == --env ]]; then compopt -o nospace 2>/dev/null; fi
  elif ((status == 1)); then
    return
  elif ((status == 3)) && [[ $current == -* ]]; then
    _mxfp4_repack_propose -W "$(_mxfp4_repack_flags "$command")" -- "$current"
  elif ((status == 3)) && [[ -z $command ]]; then
    _mxfp4_repack_propose -W "$commands" -- "$current"
  elif ((status == 3)) && [[ $command == list && " $tables " == *" $previous "* ]]; then
    # A row's first member is its name.
    _mxfp4_repack_propose -W "$(mxfp4-repack list "$previous" --json 2>/dev/null |
      sed -nE '/^ {4}\{/{n;s/.*: "([^"]*)".*/\1/p}' | sort -u)" -- "$current"
  elif ((status == 3)) && [[ $command == list ]]; then
    _mxfp4_repack_propose -W "$tables" -- "$current"
  elif ((status == 3)) && [[ $command == completion ]]; then
    _mxfp4_repack_propose -W 'bash fish zsh' -- "$current"
  else
    compopt -o filenames 2>/dev/null
    _mxfp4_repack_propose -f -- "$current"
  fi
}

complete -F _mxfp4_repack mxfp4-repack
