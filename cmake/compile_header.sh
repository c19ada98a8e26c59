#!/bin/sh
# compile_header.sh ROOT COMPILATION...: compiles a precompiled header, and writes beside it (FILE.sum) a checksum
# of all that it was made of, but for the name of the checkout's folder, ROOT. The compiler cache reads that one
# instead of the header, of about 100 MB, each time when something is compiled with it (CCACHE_PCH_EXTSUM): without
# it a third of the time of a build goes there. The header itself is not cached, for it has names of this checkout's
# files in it.
set -e
root=$1
shift
"$@"
compilation=$* compiler=$1 output='' rule=''
while [ $# -gt 1 ]; do
  case $1,$2 in
    -o,*.gch | -o,*.pch) output=$2 ;;
    -MF,*) rule=$2 ;;
  esac
  shift
done
[ -n "$output" ] || exit 0
# The build's folder is where this runs.
{
  printf '%s\n' "$compilation"
  "$compiler" --version
  sed -e '1s/^[^:]*://' -e 's/\\$//' "$rule" | xargs cat
} | sed -e "s|$PWD/||g" -e "s|$root/||g" -e "s|$root||g" > "$output.inputs"
sha256sum < "$output.inputs" > "$output.sum"
rm "$output.inputs"
