#!/bin/sh
# make dist makes the same archive of a commit whenever it is called, and a build of its sources,
# which have no .git, knows the commit.
set -eu

[ -e .git ] || {
	echo 'no git repository'
	exit 77
}
# The make below must not use the job server of the make that runs the tests.
unset MAKEFLAGS MAKELEVEL MFLAGS
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

make B="$dir/one" dist
sleep 1.1 # gzip has seconds
make B="$dir/two" dist
cmp "$dir"/one/*.tar.gz "$dir"/two/*.tar.gz

mkdir "$dir/sources"
tar -xf "$dir"/one/*.tar.gz -C "$dir/sources" --strip-components=1
# Built there, also in a repository of another project.
git init --quiet "$dir"
cd "$dir/sources"
make B="$dir/build" "$dir/build/generated/version.c"
commit=$(git --git-dir="$OLDPWD/.git" rev-parse --short=12 HEAD)
grep -q " (commit $commit)\";\$" "$dir/build/generated/version.c"

# Without both the version stands alone.
rm .commit
make B="$dir/build" "$dir/build/generated/version.c"
grep -q 'version_text\[\] = "[0-9.]*";$' "$dir/build/generated/version.c"
