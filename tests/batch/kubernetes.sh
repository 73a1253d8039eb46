# The Kubernetes manifest: what it says is valid, and its own command lines, run for every completion
# index, give the bytes of one process. No cluster is needed.
"$python" -c 'import yaml' 2>/dev/null || skip 'python3-yaml is not installed'
manifest=$SOURCE_DIR/scripts/batch/kubernetes-indexed-job.yaml
check() { "$python" "$SOURCE_DIR/tests/batch/kubernetes_manifest.py" "$manifest" "$@"; }
check || fail 'the manifest has faults'
# The API's own schema: of this manifest and those of the guide.
api() { "$python" "$SOURCE_DIR/tests/batch/kubernetes_api.py" "$TESTDATA"/kubernetes/api-*.json "$@"; }
api "$manifest" "$SOURCE_DIR/man/guide/kubernetes.md" || fail 'a manifest is not what the API takes'

# The words of a container, with the mounts in this directory.
words() { check --args "$1" | sed -E "s#^(--output=)?/(models|blobs)/#\1$PWD/\2/#"; }
mkdir models blobs
cp -r "$TESTDATA/ingest/gptoss_hf" models/gpt-oss-120b
mapfile -t convert < <(words convert)
first=("${convert[@]/'$(JOB_COMPLETION_INDEX)'/0}")  # as Kubernetes expands it
mapfile -t finalize < <(words finalize)
# The second job's first container, quicker: it ends when the last shard is whole, not before.
mapfile -t wait < <(words wait)
script=$(check --command wait | tail -n +3 | sed 's/sleep 10/sleep 0.1/')
sh -c "$script" "${wait[@]}" 2>waiting &
waiter=$!
for ((index = $(check --completions) - 1; index >= 0; --index)); do
  kill -0 $waiter || fail "finalize would begin before shard $index"
  expect_exit 0 "$BIN" "${convert[@]/'$(JOB_COMPLETION_INDEX)'/$index}"
done
wait $waiter || fail 'the waiting container failed'
# A pod that is started again for an index that is done.
expect_exit 0 "$BIN" "${first[@]}"
grep -q 'complete already' stdout || fail 'the shard was not recognised'
expect_exit 0 "$BIN" "${finalize[@]}"
# Another attempt of that job need not wait; SIGTERM ends the waiting at once.
timeout 20 sh -c "$script" "${wait[@]}" || fail 'a finalized blob is waited for'
got=0
timeout -s TERM --preserve-status 0.5 sh -c "$script" "$PWD/nowhere" 8 2>waiting || got=$?
[ $got = 143 ] || fail "SIGTERM: exit $got"
expect_exit 0 "$BIN" convert models/gpt-oss-120b -o want --arch sm90
diff -r want blobs/gpt-oss-120b-sm90

# The exit codes that the manifest calls final are the program's.
expect_exit 3 "$BIN" "${first[@]/gpt-oss-120b/missing}"
expect_exit 2 "$BIN" "${convert[@]}"
expect_exit 4 "$BIN" "${first[@]/sm90/sm75}"
