#compdef mxfp4-repack
# zsh completion for mxfp4-repack(1). tests/cli/flags.sh compares it with --help and the man page.

_mxfp4_repack() {
  local -a every machine resources commands
  commands=(
    'convert:repack a checkpoint for one backend'
    'inspect:show what is in a checkpoint or a blob'
    'explain:say which backend a deployment gets, and why'
    'verify:check a blob'
    'diff:compare two blobs'
    'unpack:give back the loaded layout'
    'finalize:finish a blob made in shards'
    'list:show the tables'
  )
  every=(
    '(-h --help)'{-h,--help}'[show help]'
    '--json[one JSON document on stdout]'
    '--progress=[when to draw a progress bar]:when:(auto always never)'
    '--color=[when to use colour]:when:(auto always never)'
    '-v[say more]'
    '(-q --quiet)'{-q,--quiet}'[say only what goes wrong]'
  )
  machine=(
    '--arch=[GPU or CPU architecture]:architecture:(sm80 sm89 sm90 sm100 sm103 sm120 gfx942 gfx950 x86_64)'
    '--platform=[follows from --arch where it can]:platform:(cuda rocm xpu cpu other)'
    '--target=[facts of the machine as JSON]:file:_files'
    '--moe-backend=[the option of the engine]:backend:(auto deep_gemm flashinfer_trtllm flashinfer_trtllm_afp8 flashinfer_cutlass flashinfer_cutlass_afp8 triton triton_unfused humming marlin aiter aiter_mxfp4_fp8 aiter_mxfp4_mxfp4 aiter_triton_mxfp4_bf16 aiter_triton_mxfp4_mxfp4 b12x flashinfer_moe_ep_cutedsl flashinfer_moe_ep_mega_deep_gemm xpu cpu emulation)'
    '--backend=[skip the oracle]:backend:(AITER_TRITON_MXFP4_BF16 AITER_TRITON_MXFP4_MXFP4 B12X_MXFP4_BF16 B12X_MXFP4_MXFP8 CUTLASS_MXFP4_MXFP4 FLASHINFER_MOE_EP_CUTEDSL FLASHINFER_MOE_EP_DEEP_GEMM AITER_MXFP4_BF16 AITER_MXFP4_FP8 AITER_MXFP4_MXFP4 BATCHED_MARLIN CPU DEEPGEMM_MXFP4 EMULATION FLASHINFER_CUTLASS_MXFP4_BF16 FLASHINFER_CUTLASS_MXFP4_MXFP8 FLASHINFER_TRTLLM_MXFP4_BF16 FLASHINFER_TRTLLM_MXFP4_MXFP8 HUMMING MARLIN NONE TRITON TRITON_UNFUSED XPU)'
    '--family=[converter family]:family:(gpt_oss generic)'
    '--selector=[selection function]:selector:(gpt_oss deepseek_v4)'
    '--quantization-config=[override object, or its file]:file:_files'
    '--libs=[kernel packages there]:packages:_values -s , package aiter b12x deep_gemm flashinfer flashinfer_cutlass flashinfer_situ humming quark triton_kernels'
    '*--no-lib=[this package is not there]:package:(aiter b12x deep_gemm flashinfer flashinfer_cutlass flashinfer_situ humming quark triton_kernels)'
    '--activation=[activation of the experts]:activation:(silu gelu gelu_tanh relu2 swigluoai swiglustep silu_no_mul gelu_no_mul gelu_tanh_no_mul relu2_no_mul)'
    '--routing-method=[routing method]:method:(Default Renormalize DeepSeekV3 Llama4 RenormalizeNaive TopK SigmoidRenorm MiniMax2 Unspecified DeepseekV4 Custom Simulated)'
    '*--env=[NAME=VALUE of the serving process]:variable: '
    '*--knob=[layout parameter]:parameter:(params_dtype= marlin_input_dtype= humming_input_dtype= cuda_compiler= aiter_weight= tp_size=)'
    '--pad=[round sizes, or not]:padding:(auto none)'
    '--revision=[vLLM release that serves]:revision: '
    '--allow-known-defects[accept bytes known to be wrong]'
    '--allow-unservable[write what the engine would not serve]'
    '--tp-size=[tensor parallel size]:size: '
    '--dp-size=[data parallel size]:size: '
    '--pcp-size=[prefill context parallel size]:size: '
    '--all2all-backend=[all-to-all kernels]:backend:(allgather_reducescatter deepep_high_throughput deepep_low_latency mori nixl_ep flashinfer_all2allv flashinfer_nvlink_two_sided flashinfer_nvlink_one_sided)'
    '--enable-expert-parallel[split by experts]'
    '--enable-eplb[expert load balancing]'
    '--sequence-parallel[sequence parallel MoE]'
    '--enable-lora[LoRA adapters]'
    '--expert-placement=[which experts a rank holds]:placement:(linear round_robin)'
    '--rank=[only the blob of this rank]:rank: '
    '--layers=[only these layers]:layers: '
    '--style=[naming style]:style:(gpt_oss gpt_oss_original deepseek_v4 quark compressed_tensors mxfp4 loaded)'
    '--model-config=[config.json of the input]:file:_files'
  )
  resources=(
    '(-j --threads)'{-j,--threads=}'[workers]:number: '
    '--memory=[budget for buffers]:size:(256MiB 1GiB 4GiB)'
  )

  local curcontext=$curcontext state line
  _arguments -C \
    '(-h --help)'{-h,--help}'[show help]' \
    '(-V --version)'{-V,--version}'[show the version]' \
    '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      curcontext=${curcontext%:*:*}:mxfp4-repack-$line[1]:
      case $line[1] in
        convert)
          _arguments $every $machine $resources \
            '(-o --output)'{-o,--output=}'[directory to write]:directory:_directories' \
            '--compress=[seekable zstd, or plain]:method:(zstd none)' \
            '--level=[how hard to compress]:level: ' \
            '--emit=[where to stop]:stage:(packed loaded)' \
            '--include-rest[write a whole model directory]' \
            '--model-card[README.md for a model hub]' \
            '(-n --dry-run)'{-n,--dry-run}'[plan only]' \
            '--shard=[one share of the layers]:share (I/N, auto/N):(auto)' \
            '--resume[keep complete layers]' \
            '--check[with --resume, read every byte]' \
            '(-f --force)'{-f,--force}'[replace an earlier result]' \
            '1:checkpoint:_files' ;;
        inspect)
          _arguments $every $machine \
            '--tensors[list the tensors of all layers]' \
            '--layer=[list the tensors of this layer]:layer: ' \
            '--html=[page to write]:file:_files' \
            '1:checkpoint or blob:_files' ;;
        explain)
          _arguments $every $machine \
            '--against=[what another revision decides differently]:revision:' \
            '--history[every release: backend, sizes, blobs]' \
            '--all[every backend and how to get it]' \
            '--batch=[answer JSON lines]:file:_files' \
            '1:checkpoint:_files' ;;
        verify)
          _arguments $every $resources \
            '--against=[checkpoint to compare with]:checkpoint:_files' \
            '--style=[naming style]:style:(gpt_oss gpt_oss_original deepseek_v4 quark compressed_tensors mxfp4 loaded)' \
            '--model-config=[config.json of the checkpoint]:file:_files' \
            '1:blob:_directories' ;;
        diff) _arguments $every $resources '1:blob:_directories' '2:blob:_directories' ;;
        unpack)
          _arguments $every $resources \
            '(-o --output)'{-o,--output=}'[directory to write]:directory:_directories' \
            '(-f --force)'{-f,--force}'[replace an earlier result]' \
            '1:blob:_directories' ;;
        finalize) _arguments $every $resources '--model-card[README.md for a model hub]' '1:blob:_directories' ;;
        list)
          _arguments $every \
            '--revision=[vLLM release that serves]:revision: ' \
            '1:table:(backends layouts machines revisions styles)' ;;
      esac ;;
  esac
}

_mxfp4_repack "$@"
