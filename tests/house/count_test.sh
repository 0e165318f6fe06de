#!/usr/bin/env bash
# The count that .ci/test prints, on tests that pass, fail, skip, crash and hang on purpose.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(mktemp -d) || exit 2
trap 'rm -rf "$root"' EXIT
failed=0

cat >"$root/meson.build" <<'BUILD'
project('on purpose')
foreach name, body : {
  'good': 'exit 0',
  'bad': 'echo last words; exit 1',
  'absent': 'exit 77',
  'cases_good': 'echo "[  PASSED  ] 12 tests."; echo "[  SKIPPED ] 2 tests, listed below:"',
  'cases_bad': 'echo "[  PASSED  ] 3 tests."; echo "[  FAILED  ] 2 tests, listed below:"; exit 1',
  'crash': 'echo "[ RUN      ] A.b"; kill -SEGV $$',
  'hang': 'exec sleep 60'}
  test(name, find_program('sh'), args: ['-c', body], timeout: 1)
endforeach
BUILD
meson setup "$root/build" "$root" >/dev/null || exit 2

expect() {  # tests, last line, exit code
  local output code
  read -ra names <<<"$1"
  output=$("$here/../../.ci/test" "$root/build" "${names[@]}" 2>&1)
  code=$?
  [ "$(tail -n 1 <<<"$output")" = "$2" ] && [ $code -eq "$3" ] && return
  printf 'FAILED: tests "%s": wanted "%s" and exit code %d, got %d and\n%s\n' "$1" "$2" "$3" $code "$output"
  failed=1
}

expect "good" "1 passed, 0 failed, 0 skipped" 0
expect "bad" "0 passed, 1 failed, 0 skipped" 1
expect "absent good" "1 passed, 0 failed, 1 skipped" 0
expect "absent" "0 passed, 0 failed, 1 skipped" 1
expect "cases_good" "12 passed, 0 failed, 2 skipped" 0
expect "cases_good cases_bad" "15 passed, 2 failed, 2 skipped" 1
expect "crash good" "1 passed, 1 failed, 0 skipped" 1
expect "hang good" "1 passed, 1 failed, 0 skipped" 1
expect "no_such_test" "0 passed, 1 failed, 0 skipped" 1

[ $failed -eq 0 ] && echo "count_test: every kind of ending is counted"
exit $failed
