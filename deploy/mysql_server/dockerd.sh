#!/bin/sh
# dockerd.sh COMMAND...: run COMMAND beside a Docker engine: the one that answers, else, as root, a dockerd of our own
# with private data, ended with COMMAND.
set -eu
if docker version >/dev/null 2>&1; then exec "$@"; fi
command -v dockerd >/dev/null || { echo "no Docker engine answers and dockerd is missing; apt-get install docker.io" >&2; exit 69; }

home=$(mktemp -d)
DOCKER_HOST=unix://$home/docker.sock
export DOCKER_HOST
dockerd --host "$DOCKER_HOST" --data-root "$home/data" --exec-root "$home/exec" --pidfile "$home/pid" >"$home/log" 2>&1 &
engine=$!
# A container on the host's network leaves a mount in there.
trap 'kill "$engine" 2>/dev/null || :; wait "$engine" 2>/dev/null || :; umount "$home/exec/netns/default" 2>/dev/null || :; rm -rf "$home"' EXIT
trap 'exit 130' INT TERM
until docker version >/dev/null 2>&1; do
    kill -0 "$engine" 2>/dev/null || { tail -n 20 "$home/log" >&2; exit 69; }
    sleep 0.2
done
"$@"
