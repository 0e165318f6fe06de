#!/usr/bin/env bash
# Breaks each rule of `tidy` once in a small tree of its own: a check that can't fail proves nothing.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(mktemp -d) || exit 2
trap 'rm -rf "$root"' EXIT
failed=0

# A tree with no fault in it.
make_tree() {
  rm -rf "${root:?}"/*
  mkdir -p "$root"/{base,comm,layers,transport/shm,tests/base,docs}
  cp "$here/../../.clang-format" "$root/"
  printf '#pragma once\n\nint half(int of);\n' >"$root/base/half.h"
  printf '#include "base/half.h"\n\nint half(int of) { return of / 2; }\n' >"$root/base/half.cpp"
  printf "lib = static_library('base', 'half.cpp')\n" >"$root/base/meson.build"
  printf '#include "base/half.h"\n\nint main() { return half(0); }\n' >"$root/tests/base/half_test.cpp"
  printf "test('half', executable('half', 'half_test.cpp'))\n" >"$root/tests/base/meson.build"
  printf '#pragma once\n' >"$root/transport/shm/shm.h"
  printf 'See [the other page](other.md).\n' >"$root/docs/page.md"
  printf 'Nothing.\n' >"$root/docs/other.md"
}

expect_clean() {  # what was done
  local output
  output=$("$here/tidy" "$root") && return
  printf 'FAILED: tidy should have accepted: %s\n%s\n' "$1" "$output"
  failed=1
}

expect_fault() {  # what was done, what must be printed
  local output
  if output=$("$here/tidy" "$root"); then
    printf 'FAILED: tidy did not see: %s\n' "$1"
    failed=1
  elif ! grep -qF "$2" <<<"$output" || [ "$(grep -c . <<<"$output")" -gt 3 ]; then
    printf 'FAILED: %s: wanted only "%s", got\n%s\n' "$1" "$2" "$output"
    failed=1
  fi
  make_tree
}

make_tree
expect_clean "a tree without fault"

printf '#include "comm/communicator.h"\n' >"$root/base/half.h"
expect_fault "an arrow that points back" "base/half.h:1: arrows: base may not include comm/communicator.h"

printf '#pragma once\n#include "transport/shm/shm.h"\n' >"$root/layers/zero.h"
expect_fault "a layer that knows a transport" "layers/zero.h:2: arrows: layers may not include transport/shm/shm.h"

printf '#pragma once\n#include "tests/support/numbers.h"\n' >"$root/comm/tune.h"
expect_fault "a room that uses tests" "comm/tune.h:2: arrows: comm may not include tests/support/numbers.h"

printf 'int main() { return 0; }\n' >"$root/tests/base/third_test.cpp"
expect_fault "a test that is not built" "tests/base/third_test.cpp:1: built:"

printf '#include <cstdlib>\n\nconst char* home() { return get''env("HOME"); }\n' >"$root/base/half.cpp"
expect_fault "a setting read on the side" "base/half.cpp:3: settings:"

printf '#include <cstdlib>\n\nconst char* home() { return get''env("HOME"); }\n' >"$root/base/config.cpp"
printf "lib = static_library('base', 'half.cpp', 'config.cpp')\n" >"$root/base/meson.build"
expect_clean "a setting read where settings are read"
make_tree

{ printf '#pragma once\n'; yes 'int half(int of);' | head -n 400; } >"$root/base/half.h"
expect_fault "a file that is too long" "base/half.h:1: length: 401 lines"

{ printf '// Length: a table.\n#pragma once\n'; yes 'int half(int of);' | head -n 400; } >"$root/base/half.h"
expect_clean "a long file that says why"
make_tree

printf 'Look into /ho''me/somebody/notes.\n' >"$root/docs/other.md"
expect_fault "a path of one machine" "docs/other.md:1: words: a path of one machine"

printf '// TO''DO: the rest.\nint half(int of) { return of / 2; }\n' >"$root/base/half.cpp"
expect_fault "work left undone" "base/half.cpp:1: words: work left undone"

rm "$root/docs/other.md"
expect_fault "a link that leads nowhere" "docs/page.md:1: links: other.md does not exist"

if (command -v clang-format-14 || command -v clang-format && clang-format --version | grep -q 'version 14\.') >/dev/null; then
  printf 'int half( int of )\n{ return of/2; }\n' >"$root/base/half.cpp"
  expect_fault "a file that is not formatted" "base/half.cpp:1: format:"
fi

[ $failed -eq 0 ] && echo "tidy_test: every rule sees its fault"
exit $failed
