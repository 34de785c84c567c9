#!/bin/sh
# make install puts everything in its place, what was installed works from
# there, and make uninstall leaves nothing.
set -eu

dir=$(mktemp -d)
target=
profd=
end()
{
	[ -z "$profd" ] || kill "$profd"
	[ -z "$target" ] || kill "$target"
	rm -rf "$dir"
}
trap end EXIT

# This make is no part of the one that runs the tests.
unset MAKEFLAGS MAKELEVEL MFLAGS

# Built elsewhere, because PREFIX goes into the executables; what does not
# depend on it need not be compiled again.
mkdir "$dir/build"
cp -a "$BUILD/obj" "$BUILD/flags" "$dir/build"

make -j2 B="$dir/build" PREFIX="$dir/prefix" install
make -j2 B="$dir/build" PREFIX="$dir/prefix" DESTDIR="$dir/staged" install

expected='bin/sentry-profctl
include/sentry_profd.h
lib/libsentry_profd.a
lib/libsentry_profd.so.0.1.0
lib/pkgconfig/sentry_profd.pc
libexec/sentry-profd/sentry-profd-capture
libexec/sentry-profd/sentry-profd-ship
libexec/sentry-profd/sentry-profd-unwind
sbin/sentry-profd
share/doc/sentry-profd/ARCHITECTURE.md
share/doc/sentry-profd/BENCHMARKS.md
share/doc/sentry-profd/CHANGES
share/doc/sentry-profd/FORMATS.md
share/doc/sentry-profd/HACKING.md
share/doc/sentry-profd/README.md
share/doc/sentry-profd/SAFETY.md
share/doc/sentry-profd/UNWINDING.md
share/man/man8/sentry-profctl.8
share/man/man8/sentry-profd.8'
for root in "$dir/prefix" "$dir/staged$dir/prefix"; do
	(cd "$root" && find . -type f | sed 's,^\./,,' | LC_ALL=C sort) >"$dir/found"
	echo "$expected" | diff - "$dir/found"
done

sleep 1000 &
target=$!
"$dir/prefix/sbin/sentry-profd" --pid $target --chunk-seconds 1 --quiet \
	--output "$dir/out" &
profd=$!
until ls "$dir/out"/000001-*.envelope; do
	kill -0 $profd
	sleep 0.1
done
kill $profd
wait $profd
profd=

make B="$dir/build" PREFIX="$dir/prefix" uninstall
make B="$dir/build" PREFIX="$dir/prefix" DESTDIR="$dir/staged" uninstall
left=$(find "$dir/prefix" "$dir/staged" ! -type d)
[ -z "$left" ] || {
	echo "left behind: $left"
	exit 1
}
