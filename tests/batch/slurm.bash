# shellcheck shell=bash disable=SC2154,SC2015
# A Slurm of its own in $PWD/slurm: munged, slurmctld and one slurmd with four CPUs, on free ports of
# localhost, as the user who runs it, touching no configuration of the machine.
#   start_slurm    brings it up, or fails with its logs;   stop_slurm    ends all it started

slurm=$PWD/slurm
export SLURM_CONF=$slurm/slurm.conf
daemons=()

slurm_installed() {
  local program
  PATH=$PATH:/usr/sbin:/sbin
  for program in munged slurmctld slurmd sbatch scontrol; do
    command -v "$program" >/dev/null || return 1
  done
}

free_ports() {
  "$python" -c 'import socket
taken = [socket.socket() for _ in range(2)]
for one in taken: one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in taken))'
}

write_slurm_conf() {
  local user control node
  user=$(id -un)
  read -r control node < <(free_ports)
  cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$control
SlurmdPort=$node
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$slurm/munge.socket
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.log
# No cgroups, no accounting: whatever machine or container this is.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
# Four CPUs are claimed whatever there are, and tasks start at once.
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
KillWait=10
NodeName=node NodeHostname=localhost NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=node Default=YES State=UP
CONF
}

# daemon NAME COMMAND...: in the foreground of a background job.
daemon() {
  local name=$1
  shift
  "$@" >>"$slurm/$name.out" 2>&1 </dev/null &
  daemons+=($!)
}

start_slurm() {
  # shellcheck disable=SC2064
  trap "show_logs \$?; stop_slurm; rm -rf '$PWD'" EXIT
  mkdir -p "$slurm/state" "$slurm/spool"
  write_slurm_conf
  (umask 077 && head -c 1024 /dev/urandom >"$slurm/munge.key")
  # --force: the scratch directory's owner and mode are not what a system's munge demands.
  daemon munged munged --foreground --force --key-file="$slurm/munge.key" --socket="$slurm/munge.socket" \
    --pid-file="$slurm/munged.pid" --seed-file="$slurm/munged.seed"
  wait_for 10 'munged' test -S "$slurm/munge.socket"
  daemon slurmctld slurmctld -D -f "$SLURM_CONF"
  daemon slurmd slurmd -D -f "$SLURM_CONF" -N node
  wait_for 30 'the node' node_is_idle_or_ended
  node_is_idle || ended
}

# Whether the node serves, or its slurmd has ended.
node_is_idle_or_ended() { node_is_idle || ! kill -0 "${daemons[2]}" 2>/dev/null; }

# Where the system has no cgroups, as in a plain chroot, Debian's slurmd ends at once.
ended() {
  local why
  why=$(grep -hi 'cgroup' "$slurm"/slurmd.log "$slurm"/slurmd.out 2>/dev/null | head -n 1)
  [ -n "$why" ] || fail 'slurmd has ended'
  skip "slurmd cannot run here: $why"
}

# show_logs STATUS: after a failure what the jobs and the daemons said.
show_logs() {
  [ "$1" != 0 ] && [ "$1" != 77 ] || return 0
  squeue --all >&2 || true
  tail -n 30 "$slurm"/*.out "$slurm"/*.log ./*.log >&2 || true
}

node_is_idle() { [ "$(sinfo --noheader --format=%T 2>/dev/null)" = idle ]; }

# wait_for SECONDS WHAT COMMAND...: until it succeeds.
wait_for() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    if [ "$SECONDS" -ge "$end" ]; then
      fail "waited in vain for $what"
    fi
    sleep 0.05
  done
}

# Jobs first, so that no step outlives its slurmd; then the daemons, by force if they must.
stop_slurm() {
  local pid
  [ ${#daemons[@]} -gt 0 ] || return 0
  scancel --signal=KILL --full --user="$(id -un)" 2>/dev/null || true
  scancel --user="$(id -un)" 2>/dev/null || true
  for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${daemons[@]}"; do
    for _ in $(seq 100); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -9 "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  for pid in $(processes_of_slurm); do kill -9 "$pid" 2>/dev/null || true; done
  daemons=()
}

# Processes with this test's slurm.conf in their environment, except this shell.
processes_of_slurm() {
  local environ pid
  for environ in /proc/[0-9]*/environ; do
    pid=${environ#/proc/}
    pid=${pid%/environ}
    [ "$pid" != "$$" ] && [ "$pid" != "$BASHPID" ] || continue
    grep -qsaz "^SLURM_CONF=$SLURM_CONF\$" "$environ" && echo "$pid"
  done
  return 0
}
