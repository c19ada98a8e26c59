#!/bin/sh
# What a CI job runs: it builds each preset and runs its tests. The job's machine needs troupe, CMake,
# Ninja, a C++ compiler and GoogleTest (Debian: libgtest-dev).
set -eu
cd "$(dirname "$0")"
for preset in debug release asan; do
  cmake --workflow --preset "$preset"
done
