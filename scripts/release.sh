#!/usr/bin/env bash
# Makes what a release consists of, from the last commit: the tarball of the sources, and its notes.
# Usage: scripts/release.sh FOLDER
#   FOLDER/troupe-VERSION.tar.xz   the same bytes for the same commit; troupe_VERSION.orig.tar.xz is a
#                                  link to it, as dpkg-source wants it
#   FOLDER/troupe-VERSION.md       the section of CHANGELOG.md
# Refuses a version that CMakeLists.txt, CHANGELOG.md and debian/changelog do not agree on, a section
# without a date, and changes that are not committed.
set -euo pipefail

fail() {
  echo "release: $*" >&2
  exit 1
}

[ $# -eq 1 ] || fail "usage: scripts/release.sh FOLDER"
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$root"
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed"

version=$(sed -n 's/^ *VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt | head -n 1)
[ -n "$version" ] || fail "CMakeLists.txt has no version"
section=$(sed -n 's/^## //p' CHANGELOG.md | head -n 1)
[[ $section =~ ^"$version ("[0-9]{4}-[0-9]{2}-[0-9]{2}")"$ ]] ||
  fail "the first section of CHANGELOG.md is '$section', not '$version (YEAR-MONTH-DAY)'"
packaged=$(sed -n '1s/^troupe (\(.*\)-[^-]*) .*/\1/p' debian/changelog)
[ "$packaged" = "$version" ] || fail "debian/changelog has version '$packaged', not $version"

name=troupe-$version
# The packaging is no part of it, as Debian has it apart. One thread, so that xz always makes the same.
git archive --format=tar --prefix="$name/" HEAD -- . ':!debian' | xz -9 -T1 > "$folder/$name.tar.xz"
ln -sf "$name.tar.xz" "$folder/troupe_$version.orig.tar.xz"
{
  echo "# troupe $version"
  awk '/^## / { if (seen++) exit; next } seen' CHANGELOG.md
} > "$folder/$name.md"
echo "release: $folder/$name.tar.xz, $folder/$name.md"
