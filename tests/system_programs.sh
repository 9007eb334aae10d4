#!/bin/sh
# Programs that the tests use and pip cannot install. Missing ones are installed where that is allowed (root on a
# system with apt-get) and named otherwise; the tests that need them then skip and say so. Quick when all are there.
set -eu

missing=""
if ! command -v chromium >/dev/null 2>&1; then missing="$missing chromium"; fi
if ! command -v initdb >/dev/null 2>&1 && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    missing="$missing postgresql"
fi
if [ -z "$missing" ]; then exit 0; fi

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "missing:$missing. The tests that need them will be skipped; install them with your system's package manager."
    exit 0
fi

# a fresh machine may still be setting itself up, and mirrors fail now and then: wait for the lock, and try again
again() {
    for pause in 5 15 45; do
        if "$@"; then return 0; fi
        echo "failed, tried again in $pause s: $*" >&2
        sleep "$pause"
    done
    "$@"
}

export DEBIAN_FRONTEND=noninteractive
options="-qq -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3"
echo "installing:$missing"
# shellcheck disable=SC2086 # several words each, on purpose
again apt-get $options update
# shellcheck disable=SC2086
again apt-get $options install -y $missing </dev/null >/dev/null
