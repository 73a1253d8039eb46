# Several processes that write the same OUT at once: whatever they say, the result is that of one
# process, or nothing is there.
need_numpy
"$python" -c 'import layer_files; layer_files.make_gpt_oss("model", 4, 8, 256, 256)'
convert=("$BIN" convert model --arch sm90)
expect_exit 0 "${convert[@]}" -o want-none --compress none
expect_exit 0 "${convert[@]}" -o want-zstd --compress zstd

# check_writers: all exit codes are 0 or 5, refusals are one error. 2 is for a --resume that comes after
# another writer's end: its flags are not those of the result, or of what a writer that lost has begun.
check_writers() {
  local i
  for i in "${!pids[@]}"; do
    local got=0
    wait "${pids[$i]}" || got=$?
    codes+=$got
    [ "$got" = 0 ] && continue
    local said='another process is writing (here|this)|exists and is not empty'
    case $got in
      5) ;;
      2) said='holds a complete result of another conversion|the unfinished conversion was begun otherwise' ;;
      *) cat "err$i" >&2; fail "exit $got of writer $i in round $round" ;;
    esac
    grep -qE "^mxfp4-repack: error: (--resume: )?out: ($said)" "err$i" ||
      { cat "err$i" >&2; fail "another refusal in round $round"; }
    [ "$(grep -c '^mxfp4-repack: error: ' "err$i")" = 1 ] ||
      { cat "err$i" >&2; fail "more than one error in round $round"; }
  done
}

rounds=${WRITER_ROUNDS:-8}
wins=0
for ((round = 0; round < rounds; ++round)); do
  rm -rf out .out.*
  pids=() codes=
  i=0
  for flags in '--compress none' '--compress zstd --resume' '--compress none --force' \
    '--compress zstd --force' '--compress none --resume'; do
    # shellcheck disable=SC2086
    "${convert[@]}" -o out $flags >/dev/null 2>"err$i" &
    pids+=($!)
    i=$((i + 1))
    ((round % 2)) || sleep "0.00$((RANDOM % 10))"
  done
  check_writers
  case $codes in *0*) wins=$((wins + 1)) ;; *) fail "nobody wrote in round $round" ;; esac
  expect_exit 0 "$BIN" verify out
  diff -r want-none out >/dev/null || diff -r want-zstd out || fail "a mixture in round $round"
done

# A writer that is stopped keeps the others away; one that is killed does not.
rm -rf out .out.*
"${convert[@]}" -o out --compress none --threads 1 >/dev/null 2>&1 &
first=$!
while kill -0 $first 2>/dev/null && [ ! -e .out.mxfp4_repack-new/result/layer-00000.safetensors ]; do :; done
kill -STOP $first 2>/dev/null || true
if [ ! -e out/mxfp4_repack.json ]; then
  for flag in '' --force --resume; do
    # shellcheck disable=SC2086
    expect_exit 5 "${convert[@]}" -o out --compress none $flag
    expect_one_error 'out: another process is writing here'
  done
fi
unfinished=$([ -e out/mxfp4_repack.json ] || echo yes)
kill -KILL $first
wait $first 2>/dev/null || true
if [ -n "$unfinished" ]; then
  expect_exit 3 "$BIN" verify out
  expect_one_error 'out: unfinished: [0-9]+ of 4 layer files are complete'
  grep -q -e --resume stderr || fail 'no hint to resume'
fi
expect_exit 0 "${convert[@]}" -o out --compress none --resume
diff -r want-none out
