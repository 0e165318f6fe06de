#!/usr/bin/env bash
# Breaks on purpose what `gate` and `folds` judge: a gate that lets everything through proves nothing.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tool=$here/gate
root=$(mktemp -d) || exit 2
trap 'rm -rf "$root"' EXIT
cd "$root" || exit 2
failed=0

expect() {  # what was done, exit code, what must be printed, arguments of the tool
  local what=$1 wanted_code=$2 wanted=$3 output code
  shift 3
  output=$("$tool" "$@" 2>&1)
  code=$?
  [ $code -eq "$wanted_code" ] && grep -qF -- "$wanted" <<<"$output" && return
  printf 'FAILED: %s: wanted exit code %d and "%s", got %d and\n%s\n' "$what" "$wanted_code" "$wanted" $code "$output"
  failed=1
}

counts() {  # cases as NAME INSTRUCTIONS...
  printf '# A comment.\nbuild some compiler\nprocessor some\n'
  printf 'case %s %s\n' "$@"
}

counts small 1000 large 50000.5 >counts
counts small 1000 large 50000.5 >measured
expect "equal counts" 0 "+0.00%" compare counts measured
counts small 1019 large 49050 >measured
expect "changes within the tolerance" 0 "+1.90%" compare counts measured
counts small 1030 large 50000.5 >measured
expect "a case that costs 3% more" 1 "FAILED: small rose by 3.00%" compare counts measured
counts small 1000 large 48500 >measured
expect "a case that costs 3% less" 1 "FAILED: large fell by 3.00%: record the better figure" compare counts measured
counts small 1000 large 50000.5 new 7 >measured
expect "a case that was never recorded" 1 "FAILED: new is not in counts" compare counts measured
counts large 50000.5 >measured
expect "a recorded case that is not counted" 1 "FAILED: small is in counts but was not counted" compare counts measured
: >measured
expect "nothing counted" 1 "FAILED: nothing was counted" compare counts measured

counts small 1000 large 50000.5 >measured
counts small 970.9 large 50000.5 >counts
expect "a recorded number that is 3% too low" 1 "FAILED: small rose by 3.00%" compare counts measured
counts large 50000.5 >counts
expect "a line missing in the record" 1 "FAILED: small is not in counts" compare counts measured
: >counts
expect "an empty record" 1 "FAILED: small is not in counts" compare counts measured
counts small 1000 large many >counts
expect "a record with a word for a number" 1 "FAILED: counts:5: not \`case NAME INSTRUCTIONS\`" compare counts measured
counts small 1000 large 0 >counts
expect "a record of nothing" 1 "FAILED: counts:5: not \`case NAME INSTRUCTIONS\`" compare counts measured
counts small 1000 small 1000 large 50000.5 >counts
expect "a case recorded twice" 1 "FAILED: counts:5: small is there twice" compare counts measured
expect "a record that is not there" 1 "nowhere can't be read" compare nowhere measured

# A profile: 1000 in all, 250 + 50 of them in two calls of what is left out, of which the second goes by its number.
cat >profile <<'PROFILE'
events: Ir
fn=(1) sluice::detail::Engine::pass()
10 300
cfn=(2) sluice::LoopWorld::Endpoint::progress()
calls=7 20
11 250
cfn=(3) sluice::LoopWorld::Endpoint::progress_of_another()
calls=1 30
12 100
fn=(4) main
cfn=(2)
calls=1 20
9 50
totals: 1000
PROFILE
expect "a profile" 0 "70.0" total profile 10
grep -v '^totals' profile >cut_off
expect "a profile that ends early" 1 "cut_off has no total" total cut_off 10
sed 's/Endpoint::progress()/Endpoint::advance()/' profile >renamed
expect "a profile without what is left out" 1 "renamed has no LoopWorld::Endpoint::progress()" total renamed 10

printf '#!/bin/sh\necho another compiler\n' >program
chmod +x program
counts small 1000 >counts
expect "a build that could not have the program" 77 "gate: Skipped" check counts
if command -v valgrind >/dev/null; then
  expect "a build by another compiler" 77 "recorded for 'some compiler', this is 'another compiler" check counts ./program
  expect "recording over another compiler's counts" 1 "remove the file first" record counts ./program
  expect "a check without a record" 1 "nowhere can't be read" check nowhere ./program
fi
expect "a program that is not built" 1 "build it first" check counts ./no_program

tool=$here/folds
printf 'baseline int8 sum 6\navx2 int8 sum 0.2\navx2 float64 avg 4\navx2 float8_e5m2 sum 11\n' >lines
expect "vectors everywhere" 0 "float8_e5m2         11" judge lines
printf 'avx2 int8 sum 6\n' >lines
expect "one element at a time" 1 "FAILED: int8 sum: 6 instructions an element" judge lines
printf 'avx2 float8_e5m2 sum 63.0\n' >lines
expect "a float8 taken apart one by one" 1 "FAILED: float8_e5m2 sum: 63.0 instructions" judge lines
printf 'baseline int8 sum 0.2\n' >lines
expect "nothing that is judged" 1 "FAILED: nothing of avx2" judge lines
printf 'avx2 int8 sum\n' >lines
expect "a line without a number" 1 "not \`SET TYPE OPERATION INSTRUCTIONS\`" judge lines

[ $failed -eq 0 ] && echo "gate_test: everything that is broken is seen"
exit $failed
