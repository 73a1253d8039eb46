# JSON lines in, JSON lines out: answers, refusals as answers, and what stops a batch.
line() {
  printf '{"platform":"%s","arch":"%s","libs":[],"env":{},"selector":"gpt_oss","moe_backend":"%s","activation_override":null,"model_activation":null,"activation":"swigluoai","is_act_and_mul":true,"routing_method":"Renormalize","parallel":{"tp":1,"pcp":1,"dp":1,"enable_expert_parallel":false,"all2all_backend":"allgather_reducescatter","enable_eplb":false,"sequence_parallel":false},"lora":false}\n' "$@"
}

# batch FILE...: the answers by rules whose messages are known.
batch() { "$BIN" explain --batch "$@" --revision vllm-2026-05-18; }

{ line cuda sm120 marlin; line other '' auto; line cuda sm120 xpu; } >batch.jsonl
cat >want <<'EOF'
{"backend": "MARLIN", "experts_class": "MarlinExperts"}
{"backend": "NONE", "experts_class": null}
{"error": "ValueError", "message": "Mxfp4 MoE backend 'XPU' does not support the deployment configuration since kernel does not support current device cuda."}
EOF
expect_exit 0 batch batch.jsonl
cmp stdout want
expect_exit 0 batch - <batch.jsonl
cmp stdout want

# What the engine's configuration asserts before anything is chosen (0.24.0 to 0.33.0, executed).
cat >want <<'EOF'
{"error": "AssertionError", "message": "Mori does not support fusion shared expert now. Turn it off by setting VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS=0"}
EOF
for release in 0.24.0 0.33.0; do
  line rocm gfx950 auto | sed 's/"env":{}/"env":{"VLLM_ROCM_USE_AITER":"1","VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS":"true"}/
    s/"libs":\[\]/"libs":["aiter"]/; s/"dp":1,"enable_expert_parallel":false,"all2all_backend":"[a-z_]*"/"dp":8,"enable_expert_parallel":true,"all2all_backend":"mori_low_latency"/' |
    "$BIN" explain --batch - --revision "$release" >stdout
  cmp stdout want
done

# A bad line: what came before is answered, the error names file, line and key.
{ line cuda sm120 marlin; line cuda sm120 marlin | sed 's/"lora"/"Lora"/'; } >bad.jsonl
expect_exit 3 batch bad.jsonl
expect_one_error 'bad.jsonl: line 2: lora: missing$'
[ "$(wc -l <stdout)" = 1 ] || fail 'the good line was not answered'
expect_exit 3 batch missing.jsonl
expect_one_error 'missing.jsonl: cannot be opened'
