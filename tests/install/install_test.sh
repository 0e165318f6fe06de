#!/usr/bin/env bash
# Installs into a folder of its own and uses the result as a stranger would:
#   install_test.sh pkgconfig|cmake SOURCE BUILD PREFIX COMPILER...
#
# The program is the first one of README.md, so the README can't promise what does not compile. It is linked against the shared
# and the static library, outside the tree, and run as two ranks. With pkgconfig each installed header is also compiled alone.
set -euo pipefail
way=$1 source=$2 build=$3 prefix=$4
shift 4
compiler=("$@")

if [ "$way" = cmake ] && ! command -v cmake >/dev/null; then
  echo "cmake is not installed"
  exit 77
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
meson install -C "$build" --no-rebuild --quiet --destdir "$root/stage" >"$root/install.log" || { cat "$root/install.log"; exit 1; }
# The prefix is moved on purpose: nothing that was installed may know where it was built for.
mv "$root/stage/$prefix" "$root/prefix"
library=$(dirname "$(find "$root/prefix" -name libsluice.a)")

mkdir "$root/program"
cd "$root/program"
awk '/^```cpp$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$source/README.md" >all_reduce.cpp
diff all_reduce.cpp "$source/examples/all_reduce.cpp" || { echo "README.md does not show examples/all_reduce.cpp"; exit 1; }

run_two() {  # program
  local output
  output=$(LD_LIBRARY_PATH=$library timeout 60 "$build/tools/sluice" run -n 2 "$1") || { echo "$1 failed: $output"; exit 1; }
  [ "$(grep -c 'rank . of 2: the sum is 3$' <<<"$output")" -eq 2 ] || { printf '%s printed\n%s\n' "$1" "$output"; exit 1; }
}

case $way in
  pkgconfig)
    export PKG_CONFIG_PATH=$library/pkgconfig
    read -ra flags <<<"$(pkg-config --cflags sluice)"
    read -ra shared <<<"$(pkg-config --libs sluice)"
    # Static for this library alone: what it needs itself stays shared.
    read -ra needed <<<"$(pkg-config --print-requires-private sluice | tr '\n' ' ')"
    read -ra static <<<"-L$library -l:libsluice.a $(pkg-config --libs "${needed[@]}") -pthread"
    "${compiler[@]}" "${flags[@]}" -Wall -Wextra -Werror all_reduce.cpp -o shared "${shared[@]}"
    "${compiler[@]}" "${flags[@]}" -Wall -Wextra -Werror all_reduce.cpp -o static "${static[@]}"
    (cd "$root/prefix/include" && find sluice -name '*.h') | while read -r header; do
      printf '#include <%s>\n#include <%s>\n' "$header" "$header" >alone.cpp
      "${compiler[@]}" "${flags[@]}" -Wall -Wextra -Werror -fsyntax-only alone.cpp
    done
    [ "$(pkg-config --modversion sluice)" = "$("$build/tools/sluice" --version | grep -o '[0-9.]*[0-9]' | head -n 1)" ]
    ;;
  cmake)
    cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.18)
project(stranger CXX)
find_package(sluice 0.1 REQUIRED)
add_executable(shared all_reduce.cpp)
target_link_libraries(shared sluice::sluice)
add_executable(static all_reduce.cpp)
target_link_libraries(static sluice::static)
CMAKE
    cmake -G Ninja -S . -B . -DCMAKE_PREFIX_PATH="$root/prefix" -DCMAKE_CXX_COMPILER="${compiler[-1]}" >cmake.log 2>&1 || { cat cmake.log; exit 1; }
    cmake --build . >>cmake.log 2>&1 || { cat cmake.log; exit 1; }
    sed -i 's/sluice 0.1/sluice 99.0/' CMakeLists.txt
    ! cmake -G Ninja -S . -B other -DCMAKE_PREFIX_PATH="$root/prefix" >cmake.log 2>&1 || { echo "CMake accepted version 99.0"; exit 1; }
    ;;
esac
run_two ./shared
run_two ./static
echo "installed, built outside the tree with $way, run as 2 ranks against both libraries"
