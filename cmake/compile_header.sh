#!/bin/sh
# compile_header.sh COMPILATION...: compiles, and writes the checksum of a precompiled header that came out of it
# beside it (FILE.sum). The compiler cache reads that one instead of the header, of about 100 MB, each time when
# something is compiled with it (CCACHE_PCH_EXTSUM): without it a third of the time of a build goes there.
set -e
"$@"
while [ $# -gt 1 ]; do
  case $1,$2 in
    -o,*.gch | -o,*.pch) sha256sum < "$2" > "$2.sum" ;;
  esac
  shift
done
