# The oldest release, of which every other one is a change, and the newest: each decision that their wheels made,
# with its message and its trace.
slow && skip 'the same decisions, slowly'
for release in 0.21.0 0.33.0; do
  "$python" "$SOURCE_DIR/tests/engines/compare" "$BIN" "$release" | tee said
  grep -q '[1-9][0-9]* decisions equal, 0 differ' said || fail "another decision than $release's"
done
