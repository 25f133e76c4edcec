#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs a real training job that crashes during a save and resumes on other meshes of ranks, bit for
# bit, with foreground and background saves. If scripts/python_env.sh has installed PyTorch, a second
# part does the same with it. At the end, compares two steps and generates a page about the training.
#   scripts/demo.sh              writes to build/demo, or to $DEMO_DIR
# Checks each result; the exit status is 0 only if all are as expected. docs/start/demo.md shows the
# output.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

demo=$(realpath -m "${DEMO_DIR:-$root/build/demo}")
build=$root/build/demo-build
logs=$demo/logs
owner=$demo/.made-by-sealpoint-demo
train=$build/examples/train_char_lm/train_char_lm
ckpt=$build/tools/ckpt/ckpt

steps=50
save_every=10
crash_at=30
saved_mesh=data=2,tensor=2
# Each job resumes from the last checkpoint of the previous one and trains save_every steps: "ranks mesh".
resumes=("2 data=1,tensor=2" "3 data=3,tensor=1" "1 data=1,tensor=1")

# Duration of the runs on two cores; they wait for processes more than for processors.
shown_seconds=40
# Without a home Go has no cache, and builds nothing.
export GOCACHE=${GOCACHE:-$root/build/go-cache}

# More ranks than cores, also as root, on shared memory only.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl=self,vader
export OMPI_MCA_btl_vader_single_copy_mechanism=none

fail() {
  printf '\nThe demo failed: %s\nLogs are in %s\n' "$1" "$logs" >&2
  exit 1
}

heading() { printf '\n== %s\n' "$1"; }

indent() { stdbuf -oL fold -s -w 96 | sed -u 's/^./   &/'; }

# Runs a command, shows its output and keeps it in a log, and sets $status.
show() {  # log, command...
  local log=$logs/$1
  shift
  status=0
  "$@" 2>"$log.stderr" | tee "$log" | indent || status=${PIPESTATUS[0]}
}

train() {  # log, ranks, mesh, steps, arguments...
  local log=$1 ranks=$2 mesh=$3 until=$4
  shift 4
  show "$log" mpirun -n "$ranks" "$train" --mesh "$mesh" --steps "$until" \
    --report-every $save_every "$@"
}

expect_status() {  # wanted, what
  [ "$status" -eq "$1" ] || fail "$2 ended with exit status $status, not $1"
}

expect_line() {  # log, extended regular expression
  grep -Eq "$2" "$logs/$1" || fail "no line \"$2\" in $logs/$1"
}

answer() {  # question, command...
  local question=$1 answer=no
  shift
  if "$@" >>"$logs/comparisons" 2>&1; then answer=yes; fi
  printf '   %s: %s\n' "$question" $answer
  [ $answer = yes ] || fail "$question: $answer"
}

# The digest of parameters and optimizer state that was printed when a step was saved, or loaded, or
# was the last. It is of the whole tensors, so that it does not depend on the mesh.
state_of() {  # step, "saved", "resumed from" or "done", log...
  local step=$1 what=$2
  shift 2
  (cd "$logs" && cat "$@") | sed -nE "s/^step +$step  state ([0-9a-f]{16})  $what.*/\1/p" | head -n 1
}

of_step() { echo "${2:-series}/step-$(printf %012d "$1")"-*; }

# Removes only the files of an earlier demo.
start_clean() {
  if [ -e "$demo" ] && [ ! -e "$owner" ] && [ -n "$(ls -A "$demo")" ]; then
    echo "$demo is not empty, and an earlier demo did not make it; set DEMO_DIR to a different folder." >&2
    exit 1
  fi
  rm -rf -- "${demo:?}"/{series,series.stats,series.html,background,flipped,torch,logs}
  mkdir -p "$logs"
  : >"$owner"
}

configure_programs() {
  cmake -S "$root" -B "$build" -G Ninja -D CMAKE_BUILD_TYPE=Release -D SEALPOINT_WITH_MPI=ON \
    -D SEALPOINT_WITH_CUDA=OFF -D SEALPOINT_BUILD_TESTS=OFF \
    >"$logs/build" 2>&1 || {
    tail -n 30 "$logs/build" >&2
    fail "the build"
  }
}

build_programs() {
  build_with_progress build "$build" train_char_lm ckpt
  if has_torch; then build_with_progress build-python "$torch_package" sealpoint_python; fi
}

build_with_progress() {  # log, folder, target...
  local log=$logs/$1 folder=$2
  shift 2
  cmake --build "$folder" --target "$@" 2>&1 | tee -a "$log" | progress "Compiling" || {
    tail -n 30 "$log" >&2
    fail "the build"
  }
}

# Estimates the duration from scripts/build_cost.txt and the speed of this machine.
announce() {
  local compiling
  compiling=$("$root/scripts/build_cost.py" "$build" --seconds train_char_lm ckpt)
  if has_torch; then
    compiling=$((compiling + $("$root/scripts/build_cost.py" "$torch_package" --seconds sealpoint_python)))
  fi
  printf 'About %s s from here: at most %s s to compile, %s s to run.\n' \
    $((compiling + shown_seconds)) "$compiling" "$shown_seconds"
}

crash() {
  heading "Train on 4 ranks (2 x 2), save every $save_every steps, kill rank 3 in the middle of a save"
  train crash 4 $saved_mesh $steps --checkpoints series --save-every $save_every \
    --die-at $crash_at --die-in "write blobs" --die-rank 3
  expect_status $((128 + 9)) "the training that is killed"
  expect_line crash '^rank 3 dies by SIGKILL'
}

check_series() {
  heading "What the crash left:  ckpt verify --series series   (reads and checks every byte)"
  show series "$ckpt" verify --series series
  expect_status 0 "ckpt verify of the series"
  expect_line series ' \(full\): 2 valid, 1 uncommitted; '
  expect_line series "step-0*$crash_at-[0-9a-f]*: uncommitted, [1-9][0-9.]* [kM]?B left over\$"
}

show_plan() {
  heading "What 3 data-parallel ranks would read from the newest checkpoint:  ckpt ls --plan data=3 ..."
  show plan "$ckpt" ls --plan data=3 "$1"
  expect_status 0 "ckpt ls --plan"
  expect_line plan '^placement +12 tensors as stored$'
}

same_text() { printf '%s %s\n' "$1" "$2" && [ -n "$1" ] && [ "$1" = "$2" ]; }

resume() {
  local from=$((crash_at - save_every)) logs_before=(crash) one ranks mesh
  for one in "${resumes[@]}"; do
    read -r ranks mesh <<<"$one"
    heading "Resume on $ranks rank$([ "$ranks" = 1 ] || echo s) ($mesh)"
    train "resume-$ranks" "$ranks" "$mesh" $((from + save_every)) --checkpoints series \
      --save-every $save_every --resume
    expect_status 0 "the resumed training"
    answer "loaded parameters and optimizer state are identical to the saved ones" same_text \
      "$(state_of $from saved "${logs_before[@]}")" \
      "$(state_of $from "resumed from" "resume-$ranks")"
    logs_before+=("resume-$ranks")
    from=$((from + save_every))
  done
}

show_series() {
  heading "The series now:  ckpt ls series"
  show inspect "$ckpt" ls series
  expect_status 0 "ckpt ls of the series"
  expect_line inspect ': 5 committed, 1 uncommitted$'
}

# The interrupted and the uninterrupted run printed the same losses.
losses_are_the_same() {
  grep -h "mean loss" "$logs"/crash "$logs"/resume-[123] | sort -u >"$logs/losses.interrupted"
  grep "mean loss" "$logs/reference" | sort -u >"$logs/losses.reference"
  [ -s "$logs/losses.reference" ] && diff "$logs"/losses.{interrupted,reference}
}

saved_states_are_the_same() {
  local step one
  for ((step = save_every; step <= steps; step += save_every)); do
    one=$(state_of $step saved crash resume-2 resume-3 resume-1)
    same_text "$one" "$(state_of $step saved reference)" || return 1
  done
}

compare() {
  heading "Train again on 4 ranks without interruption, with background saves, and compare"
  train reference 4 $saved_mesh $steps --checkpoints background --save-every $save_every --async
  expect_status 0 "the uninterrupted training"
  answer "losses are identical to those of the interrupted run" losses_are_the_same
  answer "final parameters and optimizer state are identical, bit for bit" same_text \
    "$(state_of $steps done resume-1)" "$(state_of $steps done reference)"
  answer "all background saves are identical to the earlier saves of the same steps" \
    saved_states_are_the_same
  show background "$ckpt" verify --series background
  expect_status 0 "ckpt verify of the background saves"
  train resume-background 2 data=1,tensor=2 $steps --checkpoints background --resume
  answer "loaded parameters and optimizer state are identical to the saved ones" same_text \
    "$(state_of $steps saved reference)" "$(state_of $steps "resumed from" resume-background)"
}

# Flips the lowest bit in the middle of a blob that holds a part of the tensor. Weights are in blobs
# of their own, apart from the optimizer's state, and this one is most of them. Prints the file.
flip_one_bit() {  # checkpoint, tensor
  "$ckpt" ls --json --tensor "$2" "$1" | python3 -c '
import json, os, sys
name = json.load(sys.stdin)["tensors"][0]["shards"][0]["blob"] + ".blob"
with open(os.path.join(sys.argv[1], name), "r+b") as blob:
    middle = os.fstat(blob.fileno()).st_size // 2
    byte = os.pread(blob.fileno(), 1, middle)[0]
    os.pwrite(blob.fileno(), bytes([byte ^ 1]), middle)
print(name)' "$1"
}

flip() {
  local blob tensor=model.hidden.weight
  heading "Flip one bit in a copy of the newest checkpoint:  ckpt verify flipped"
  cp -r "$(of_step $steps)" flipped
  blob=$(flip_one_bit flipped $tensor)
  show flipped "$ckpt" verify flipped
  printf '   exit status %s\n' "$status"
  expect_status 1 "ckpt verify of the damaged copy"
  expect_line flipped "^corrupt: .*$blob:[0-9]+ tensor \"$tensor\""
  expect_line flipped ': corrupt \(full\): 1 violation$'
}

show_difference() {
  heading "What the last $save_every steps changed:  ckpt diff ... ...   (by digests: reads no payload)"
  show diff "$ckpt" diff "$(of_step $((steps - save_every)) background)" "$(of_step $steps background)"
  expect_status 1 "ckpt diff of two steps"
  expect_line diff '^different content: 0 tensors and 1 object are equal; .* 0 B of payload$'
}

make_page() {
  heading "A page about the whole training:  ckpt report series --norms --keep-last 2 --out series.html"
  show report "$ckpt" report series --norms --keep-last 2 --out series.html
  expect_status 0 "ckpt report"
  expect_line report '^series.html: 6 checkpoints, '
  printf '   open %s/series.html in a browser\n' "${demo#"$root"/}"
}

prepare() {
  echo "Sealpoint demo: a small language model learns the GNU General Public License, crashes, and resumes."
  echo "The first run installs packages and compiles programs, which takes minutes."
  "$root/scripts/install_packages.sh" 2>&1 | tee "$logs/packages" | progress "Packages" || {
    cat "$logs/packages" >&2
    fail "the installation of packages"
  }
  configure_programs
  if has_torch; then configure_package; fi
  announce
  build_programs
}

show_next() {
  local shown=${demo#"$root"/}
  printf '\nThree commands to try next:\n'
  printf '   %s\n' "${ckpt#"$root"/} ls $shown/series" \
    "python3 -m venv build/try && build/try/bin/pip install -v ." "scripts/test.sh"
}

# shellcheck source=scripts/progress.sh
. "$root/scripts/progress.sh"
# shellcheck source=scripts/demo_torch.sh
. "$root/scripts/demo_torch.sh"
start_clean
prepare
cd "$demo"
started=$SECONDS
crash
check_series
show_plan "$(of_step $((crash_at - save_every)))"
resume
show_series
compare
flip
torch_act
show_difference
make_page
printf '\nAll results are as expected (%s s). Checkpoints and logs, including the messages of MPI, are in %s\n' \
  $((SECONDS - started)) "$demo"
show_next
