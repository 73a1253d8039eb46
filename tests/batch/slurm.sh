# scripts/batch/slurm-array on a real Slurm that this test starts: an array of four; one task's
# program is killed and one task is requeued by the administrator, both in the middle of their work;
# the finalize job waits for all; the result has the bytes of one process.
# shellcheck source=tests/batch/slurm.bash
source "$SOURCE_DIR/tests/batch/slurm.bash"
slurm_installed || skip 'Slurm is not installed (Debian: slurmctld slurmd slurm-client munge)'
need_numpy
export MXFP4_REPACK=$BIN
submit=$SOURCE_DIR/scripts/batch/slurm-array

# Twelve layers, three a task.
"$SOURCE_DIR/scripts/make-checkpoint" model --layers 12 --experts 4 --hidden 704 --intermediate 704 --experts-only
flags=(--arch sm90 --backend MARLIN --level 19)
expect_exit 0 "$BIN" convert model -o want "${flags[@]}"

# The first runs of tasks 1 and 2 stop in the middle of their shard: before a shard's second layer file
# has its name. Which call of the system that is, a shard converted with one thread tells.
expect_exit 0 preloaded FAULT_LOG="$PWD/calls" \
  "$BIN" convert model -o one "${flags[@]}" --shard 1/4 --threads 1
middle=$(grep -nE '^(rename|exchange) .*layer-[0-9]+\.safetensors' calls | sed -n '2s/:.*//p')
[ -n "$middle" ] || { cat calls >&2; fail 'no second layer file'; }
cat >program <<PROGRAM
#!/bin/sh
if [ "\$1 \${SLURM_RESTART_COUNT:-0}" = 'convert 0' ] && [ -n "\$MIDDLE" ]; then
  case \${SLURM_ARRAY_TASK_ID:-} in
    1 | 2) export LD_PRELOAD='$FAULTS' ASAN_OPTIONS=verify_asan_link_order=0 FAULT_STOP_AT="\$MIDDLE" ;;
  esac
fi
exec '$BIN' "\$@"
PROGRAM
chmod +x program
export MXFP4_REPACK=$PWD/program

# A conversion that no task could do is not queued at all; refusing it needs no daemon.
expect_exit 3 "$submit" 4 -- nowhere -o out --arch sm90
expect_exit 4 "$submit" 4 -- model -o out --arch sm75
for bad in '' '0 -- model -o out' '4 model -o out' '4 -- model' '4 -- model -o out --shard 0/4'; do
  # shellcheck disable=SC2086
  expect_exit 2 "$submit" $bad
done

start_slurm
expect_exit 0 env MIDDLE="$middle" "$submit" 4 --cpus-per-task=1 -- model -o out "${flags[@]}"
array=$(sed -n 's/.* are job \([0-9]*\),.*/\1/p' stdout)
final=$(sed -n 's/.*: job \([0-9]*\) finalizes.*/\1/p' stdout)
[ -n "$array$final" ] || fail 'no job numbers'

# The process of task I that converts, once it has stopped.
stopped() {
  local process
  for process in /proc/[0-9]*; do
    [ "$process/exe" -ef "$BIN" ] || continue
    if grep -qsaz "^SLURM_CONF=$SLURM_CONF\$" "$process/environ" &&
      grep -qsaz "^SLURM_ARRAY_TASK_ID=$1\$" "$process/environ" &&
      grep -qs '^State:.*T (stopped)' "$process/status"; then
      converter=${process#/proc/}
      return
    fi
  done
  return 1
}
# Shard I is in the middle: one of its three files is finished.
in_the_middle() {
  local part
  part=$(printf 'shard-%03d-of-004' "$1")
  local record=.out.mxfp4_repack-new/$part.progress
  ! grep -q '"ready"' "$record" || fail "shard $1 is complete"
  # A file is recorded just before it has its name.
  grep -q '"file":"layer-[0-9]*\.safetensors' "$record" || fail "shard $1 has no file"
}

wait_for 60 'the middle of task 1' stopped 1
in_the_middle 1
kill -9 "$converter"
wait_for 60 'the middle of task 2' stopped 2
in_the_middle 2
scontrol requeue "${array}_2"
wait_for 60 'the log of task 1' grep -q 'this task is queued again' "mxfp4-repack-${array}_1.log"

restarts() { scontrol show job "${array}_$1" --oneliner | sed -n 's/.* Restarts=\([0-9]*\) .*/\1/p'; }
restarted() { [ "$(restarts "$1")" = 1 ]; }
wait_for 30 'the second start of task 1' restarted 1
wait_for 30 'the second start of task 2' restarted 2
[ ! -e out/mxfp4_repack.json ] || fail 'finalized before all shards were there'

state() { scontrol show job "$1" --oneliner | sed -n 's/.* JobState=\([A-Z]*\) .*/\1/p'; }
ended() { case $(state "$1") in PENDING | RUNNING | COMPLETING) return 1 ;; esac; }
# Slurm holds a requeued job back for two minutes. Three seconds do, once, but not none: a start in the
# same second as the end of the run before is refused ("Job credential revoked") and fails the job.
held=(1 2)
ended_soon() {
  local task
  for task in "${!held[@]}"; do
    scontrol show job "${array}_${held[$task]}" --oneliner | grep -q ' Reason=BeginTime ' || continue
    scontrol update "jobid=${array}_${held[$task]}" StartTime=now+3 || continue
    unset "held[$task]"
  done
  ended "$1"
}
wait_for 300 'the finalize job' ended_soon "$final"
for task in 0 1 2 3; do
  [ "$(state "${array}_$task")" = COMPLETED ] || fail "task $task: $(state "${array}_$task")"
done
[ "$(state "$final")" = COMPLETED ] || fail "finalize: $(state "$final")"
[ "$(restarts 0) $(restarts 1) $(restarts 2) $(restarts 3)" = '0 1 1 0' ] || fail 'other tasks were restarted'
for task in 1 2; do
  # On a busy machine a shard may be complete before the requeue stops it.
  grep -qE '[,;] [12] kept|complete already, nothing to do' "mxfp4-repack-${array}_$task.log" ||
    { cat "mxfp4-repack-${array}_$task.log" >&2; fail "task $task began from nothing"; }
done
diff -r want out
expect_exit 0 "$BIN" verify out --against model

# The same words again find all done.
expect_exit 0 "$submit" --wait 4 -- model -o out "${flags[@]}"
grep -q 'slurm-array: out is complete' stdout || fail 'no good end'
diff -r want out

# What every task would refuse is refused before anything is queued.
cp -r model broken
expect_exit 0 "$BIN" convert broken -o other "${flags[@]}" --shard 0/3
expect_exit 5 "$submit" --wait 4 -- broken -o other "${flags[@]}"
expect_one_error 'begun as one of 3 shards, now of 4$'
! grep -q 'are job' stdout || fail 'jobs were queued'

# A task that fails for good ends the finalize job too; the logs say why: its record cannot be written.
mkdir -p .half.mxfp4_repack-new/shard-003-of-004.progress
expect_exit 1 "$submit" --wait 4 -- broken -o half "${flags[@]}"
grep -q 'error: half: not complete' stderr || fail 'no word about the failure'
grep -q 'not a file that this program wrote' mxfp4-repack-*_3.log ||
  fail 'no reason in the log'
stop_slurm
[ -z "$(processes_of_slurm)" ] || fail 'something of Slurm is left'
