#!/usr/bin/env bash
# The benchmark programs over every type, operation, size, root and place, on every way that ranks can be connected:
#
#   matrix.sh BUILD [--programs "all_reduce ..."] [--ways "processes threads tcp loop"] [--ranks "2 3 4 7"]
#                   [--max 64K] [--factor 2] [--sweep N --sweep-max 16M --sweep-ranks "2 5 9 16" --sweep-seed S]
#                   [-- options of the programs]
#
# processes and threads are shared memory; tcp is processes; loop is all ranks in one thread. With --sweep each program also
# runs N random combinations per way and number of ranks. Every run has a deadline. Prints a line per run and ends with
# `combinations N wrong N`; the exit code is 0 only if nothing was wrong and no run failed.
set -uo pipefail

programs="all_reduce all_gather reduce_scatter broadcast reduce alltoall alltoallv gather scatter sendrecv"
ways="processes threads tcp loop"
ranks="2 3 4 7"
max=64K factor=2 sweep=0 sweep_max=16M sweep_ranks="2 5 9 16" sweep_seed=1 limit=${MATRIX_LIMIT:-900}
build=${1:?usage: matrix.sh BUILD [options], see the head of this file}
shift
while (($#)); do
  case $1 in
    --programs) programs=$2 ;;
    --ways) ways=$2 ;;
    --ranks) ranks=$2 ;;
    --max) max=$2 ;;
    --factor) factor=$2 ;;
    --sweep) sweep=$2 ;;
    --sweep-max) sweep_max=$2 ;;
    --sweep-ranks) sweep_ranks=$2 ;;
    --sweep-seed) sweep_seed=$2 ;;
    --) shift; break ;;
    *) echo "matrix.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done

combinations=0 wrong=0 failed=0
output=$(mktemp) || exit 2
trap 'rm -f "$output"' EXIT

# run WAY RANKS PROGRAM OPTIONS...: adds what the program's footer says to the totals.
run() {
  local way=$1 count=$2 program=$3 transport=shm where=-g code line
  shift 3
  case $way in
    threads) where=-t ;;
    tcp | loop) transport=$way ;;
  esac
  local begin=$SECONDS
  SLUICE_TRANSPORT=$transport timeout --kill-after=10 "$limit" "$build/tools/${program}_perf" "$where" "$count" "$@" \
    >"$output" 2>&1
  code=$?
  line=$(grep '^# Combinations checked' "$output" | tail -1)
  if ((code == 0)) && [ -n "$line" ]; then
    echo "ok     $program $way $count ranks: $(cut -d: -f2 <<<"$line") ($((SECONDS - begin)) s)"
  else
    failed=$((failed + 1))
    echo "FAILED $program $way $count ranks: exit code $code: ${program}_perf $where $count $*"
    grep -iE 'wrong|error|lost|timeout|mismatch|invalid|unsupported|refused|aborted' "$output" | head -5
  fi
  if [ -n "$line" ]; then
    combinations=$((combinations + $(awk '{print $5}' <<<"$line")))
    wrong=$((wrong + $(awk '{print $7}' <<<"$line")))
  fi
}

for way in $ways; do
  for program in $programs; do
    for count in $ranks; do
      run "$way" "$count" "$program" -b 0 -e "$max" -f "$factor" -n 0 -w 0 -d all -o all -r 1 "$@"
    done
    ((sweep > 0)) || continue
    for count in $sweep_ranks; do
      run "$way" "$count" "$program" -e "$sweep_max" -d all -o all -r all -w 0 --sweep "$sweep" \
        --sweep-seed "$sweep_seed" "$@"
    done
  done
done
echo "combinations $combinations wrong $wrong failed runs $failed"
((wrong == 0 && failed == 0))
