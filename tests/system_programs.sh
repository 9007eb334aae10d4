#!/bin/sh
# Programs that the tests use and pip cannot install. Missing ones are installed where that is allowed (root on a
# system with apt-get) and named otherwise; the tests that need them then skip and say so.
set -eu

if command -v chromium >/dev/null 2>&1; then
    echo "chromium: present"
elif [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq && apt-get install -y -qq chromium >/dev/null
    echo "chromium: installed"
else
    echo "chromium: missing; the browser tests will be skipped. Install it with your system's package manager."
fi
