#!/bin/sh
# What mpirun takes for ssh:  remote_shell.sh NAMESPACES CORES ADDRESS COMMAND...
# Host i has the address that ends in i + 1, the namespace NAMESPACESi, the name that Hosts.start() gives it, and the cores that come
# (i + 1)th in CORES (Hosts.cores()).
set -eu
host=$((${3##*.} - 1)) namespace=$1$((${3##*.} - 1))
cores=$(printf '%s' "$2" | cut -d/ -f$((host + 1)))
[ "$cores" = - ] || on_cores="taskset -c $cores"
shift 3
# As ssh does: the words make one line of shell.
# shellcheck disable=SC2086  # on_cores is words
exec ip netns exec "$namespace" ${on_cores-} unshare --uts -- sh -c 'echo "$0" >/proc/sys/kernel/hostname && exec sh -c "$1"' "host$host" "$*"
