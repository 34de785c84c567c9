#!/bin/sh
# make install copies all files to their places, the installed programs work
# from there, and make uninstall removes all of them.
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

# The make below must not use the job server of the make that runs the tests.
unset MAKEFLAGS MAKELEVEL MFLAGS

# Built elsewhere, because PREFIX goes into the executables; what does not
# depend on it need not be compiled again.
mkdir "$dir/build"
cp -a "$BUILD/obj" "$BUILD/generated" "$BUILD"/*.a "$BUILD/flags" "$BUILD/print_filter" "$dir/build"

prefix="PREFIX=$dir/prefix SYSCONFDIR=$dir/prefix/etc"
# shellcheck disable=SC2086
{
	make -j2 B="$dir/build" $prefix install
	make -j2 B="$dir/build" $prefix DESTDIR="$dir/staged" install
}

expected="$({
	echo "lib/libsentry_profd.so.$(sed -n 's/^VERSION = //p' Makefile)"
	echo 'bin/sentry-profctl
include/sentry_profd.h
lib/libsentry_profd.a
lib/pkgconfig/sentry_profd.pc
lib/systemd/system/sentry-profd-metrics.service
lib/systemd/system/sentry-profd.service
lib/sysusers.d/sentry-profd.conf
lib/tmpfiles.d/sentry-profd.conf
libexec/sentry-profd/sentry-profd-capture
libexec/sentry-profd/sentry-profd-oracle
libexec/sentry-profd/sentry-profd-ship
libexec/sentry-profd/sentry-profd-unwind
sbin/sentry-profd
sbin/sentry-profd-metrics'
	if [ -e systemd/sentry-profd.conf ]; then
		echo etc/sentry-profd/sentry-profd.conf
	fi
	ls README.md LICENSE docs/*.md docs/CHANGES | sed 's,.*/,,; s,^,share/doc/sentry-profd/,'
	ls docs/examples/*.* | sed 's,^docs,share/doc/sentry-profd,'
	for p in sentry-profctl sentry-profd; do
		echo share/bash-completion/completions/$p
		echo share/fish/vendor_completions.d/$p.fish
	done
	echo share/zsh/site-functions/_sentry-profd
	for page in docs/*.[1-8]; do
		echo "share/man/man${page##*.}/${page##*/}"
	done
} | LC_ALL=C sort)"
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
# sentry-profctl is in another directory than the helpers.
"$dir/prefix/sbin/sentry-profd" --quiet --output "$dir/p.html" -- sleep 0.3
# sentry-profd is in another directory than sentry-profctl, which starts it where no daemon runs.
"$dir/prefix/bin/sentry-profctl" stack $target | grep '^thread '
[ -s "$dir/p.html" ]

for unit in sentry-profd sentry-profd-metrics; do
	grep -q "^ExecStart=$dir/prefix/sbin/$unit\( --listen .*\)\?\$" \
		"$dir/prefix/lib/systemd/system/$unit.service"
done

# The configuration belongs to the administrator, so it stays.
# shellcheck disable=SC2086
{
	make B="$dir/build" $prefix uninstall
	make B="$dir/build" $prefix DESTDIR="$dir/staged" uninstall
}
left=$(find "$dir/prefix" "$dir/staged" ! -type d ! -path '*/etc/*')
[ -z "$left" ] || {
	echo "left behind: $left"
	exit 1
}
