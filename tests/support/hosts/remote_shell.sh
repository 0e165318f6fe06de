#!/bin/sh
# What mpirun takes for ssh:  remote_shell.sh NAMESPACES ADDRESS COMMAND...
# Host i has the address that ends in i + 1, the namespace NAMESPACESi and the name that Hosts.start() gives it.
set -eu
host=$((${2##*.} - 1)) namespace=$1$((${2##*.} - 1))
shift 2
# As ssh does: the words make one line of shell.
exec ip netns exec "$namespace" unshare --uts -- sh -c 'echo "$0" >/proc/sys/kernel/hostname && exec sh -c "$1"' "host$host" "$*"
