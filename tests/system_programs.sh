#!/bin/sh
# Programs that the tests use and pip cannot install. Missing ones are installed where that is allowed (root on a
# system with apt-get) and named otherwise; the tests that need them then skip and say so.
set -eu

# need NAME PACKAGE WHAT FOUND: install PACKAGE unless NAME was found already; without it WHAT is skipped
need() {
    if [ "$4" = yes ]; then
        echo "$1: present"
    elif [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq && apt-get install -y -qq "$2" >/dev/null
        echo "$1: installed"
    else
        echo "$1: missing; $3 will be skipped. Install it with your system's package manager."
    fi
}

found=no
if command -v chromium >/dev/null 2>&1; then found=yes; fi
need chromium chromium "the browser tests" "$found"

found=no
if command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then found=yes; fi
need postgresql postgresql "the tests of PostgreSQL" "$found"
