#!/bin/sh
# Build the image of the service with the first builder that works here; without one it was only linted.
set -eu
cd "$(dirname "$0")/.."

for builder in podman docker buildah; do
    # a program alone is not enough: docker needs its daemon
    if command -v "$builder" >/dev/null 2>&1 && "$builder" info >/dev/null 2>&1; then
        echo "building with $builder"
        exec "$builder" build --file Containerfile --tag ptad .
    fi
done
echo "make container: linted, NOT BUILT: no working builder was found (podman, docker with its daemon, buildah)" >&2
