#!/bin/sh
# Installs missing dependencies of a make target.
# Usage: deps.sh build|demo|test|aarch64|analyze|bench|deb|package|pictures
#
# With apt-get (Debian, Ubuntu) the commands are printed before they run. Without
# apt-get the missing programs and libraries are listed. If nothing is missing,
# nothing is printed or changed.
#
# No package here starts a service: redis-tools contains the executable of
# redis-server, and nginx and PostgreSQL are only unpacked into $BUILD/debian
# (default: build).
set -eu

build='gcc libc6-dev make pkg-config libdw-dev libelf-dev liblzma-dev
	libzstd-dev libiberty-dev libunwind-dev libjansson-dev
	libcurl4-openssl-dev zlib1g-dev libseccomp-dev
	libprotobuf-c-dev protobuf-c-compiler libncurses-dev libmicrohttpd-dev'
demo='redis-tools'
# binutils: readelf and nm. linux-perf: profiles are compared with it.
# libc6-dev-arm64-cross: headers only. systemd: systemd-analyze checks the units.
# dwz: Debian's debug files are processed by it. python3-sentry-sdk: its
# transactions are linked to profiles. libdebuginfod1: convert --symbolize loads it.
# tmux: a terminal for sentry-profctl top. libev-dev, libuv1-dev: event loops.
# hexyl, gron: programs in Rust and in Go.
test='check g++ clang libclang-rt-14-dev clang-format clang-tidy cppcheck binutils python3 openssl mandoc strace musl-tools dwz
	python3-sentry-sdk libev-dev libuv1-dev hexyl gron
	libc6-dev-arm64-cross systemd python3-yaml zsh fish libdebuginfod1 tmux'

# make check-aarch64, in addition to make check. clang and binutils are of make check.
aarch64='qemu-system-arm qemu-user mmdebstrap gcc-aarch64-linux-gnu g++-aarch64-linux-gnu cpio'

# make valgrind, in addition to make check.
analyze='valgrind'

# make deb.
deb='dpkg-dev'

# make check-package, in addition to make deb.
package='debootstrap systemd-container lintian'

# make bench: clang is a program with 150 MB of text, git one with many short
# processes. wrk and redis-tools send requests to servers. The libraries are those of
# PostgreSQL.
bench='python3 bpftrace clang git wrk redis-tools libpq5 libldap-2.5-0 libgssapi-krb5-2
	libpam0g libxml2 liblz4-1'

# make check-pictures. npm may come with a Node.js that is not a package. Chromium
# draws no text without a font. golang-go: go tool pprof. libdevel-nytprof-perl:
# flamegraph.pl.
pictures='chromium fonts-dejavu-core golang-go libdevel-nytprof-perl'
command -v npm >/dev/null 2>&1 || pictures="$pictures npm"

case ${1-} in
build) packages=$build ;;
demo) packages="$build $demo" ;;
test) packages="$build $demo $test" ;;
aarch64) packages="$build $demo $test $aarch64" ;;
analyze) packages="$build $demo $test $analyze" ;;
bench) packages="$build $bench" ;;
deb) packages="$build $deb" ;;
package) packages="$build $deb $test $package" ;;
pictures) packages="$build $pictures" ;;
*)
	echo "usage: $0 build|demo|test|aarch64|analyze|bench|deb|package|pictures" >&2
	exit 2
	;;
esac

directory=${BUILD:-build}/debian

# Without apt-get: checks for the commands and libraries themselves.
elsewhere()
{
	commands='gcc make pkg-config protoc-c'
	case $1 in
	demo | test) commands="$commands redis-benchmark" ;;
	esac
	# perf and bpftrace are optional: their rows say that they are missing.
	[ "$1" != bench ] || commands="$commands python3"
	[ "$1" != pictures ] || commands="$commands chromium node npm go perl"
	modules='libdw libelf liblzma libzstd libunwind-ptrace jansson libcurl zlib libseccomp
		libprotobuf-c ncursesw libmicrohttpd'
	if [ "$1" = test ]; then
		commands="$commands musl-gcc g++ clang clang-tidy cppcheck readelf python3 openssl
			mandoc"
		modules="$modules check"
	fi
	missing=
	[ "$1" != test ] || [ -d /usr/aarch64-linux-gnu/include ] ||
		missing=' a C library for aarch64 in /usr/aarch64-linux-gnu'
	for c in $commands; do
		command -v "$c" >/dev/null 2>&1 || missing="$missing $c"
	done
	for m in $modules; do
		pkg-config --exists "$m" 2>/dev/null || missing="$missing $m"
	done
	[ -z "$missing" ] && return 0
	echo "These are missing; please install them:$missing" >&2
	echo "(They are installed automatically only where apt-get exists.)" >&2
	return 1
}

if ! command -v apt-get >/dev/null 2>&1; then
	elsewhere "$1"
	exit
fi

# Left out on Ubuntu, where perf is a package for each kernel.
if { [ "$1" = test ] || [ "$1" = bench ]; } &&
	grep -q '^ID=debian$' /etc/os-release; then
	packages="$packages linux-perf"
fi

# Packages whose names contain a version: Boost.Context, for coroutines, and a library of
# PostgreSQL.
bookworm=
if grep -q '^VERSION_CODENAME=bookworm$' /etc/os-release; then
	bookworm=yes
	case $1 in
	test) packages="$packages libboost-context1.74.0" ;;
	bench) packages="$packages libicu72" ;;
	esac
fi

# dpkg-query fails for unknown names, which are missing, too.
# shellcheck disable=SC2086
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $packages \
	2>/dev/null) || true
missing=
for p in $packages; do
	case "
$installed
" in
	*"
installed $p
"*) ;;
	*) missing="$missing $p" ;;
	esac
done
# Needed by one test, which is skipped without it, and by make bench T=servers.
unpack=
unless_there()
{
	[ -x "$1" ] || [ -x "$directory$1" ] || unpack="$unpack $2"
}
case $1 in
test | bench) unless_there /usr/sbin/nginx nginx ;;
esac
if [ "$1$bookworm" = benchyes ]; then
	unless_there /usr/lib/postgresql/15/bin/postgres postgresql-15
	unless_there /usr/lib/postgresql/15/bin/pgbench postgresql-client-15
fi
[ -n "$missing$unpack" ] || exit 0

# --no-remove: apt-get fails rather than removing a package that conflicts.
update='apt-get update'
install="apt-get install -y --no-install-recommends --no-remove$missing"
if [ -n "$missing" ]; then
	echo "These packages are missing. To be run now, as root:"
	echo "  $update"
	echo "  $install"
fi
[ -z "$unpack" ] || echo "And unpacked in $directory: apt-get download$unpack"

export DEBIAN_FRONTEND=noninteractive
if [ "$(id -u)" -eq 0 ]; then
	as_root=
elif command -v sudo >/dev/null 2>&1; then
	as_root='sudo env DEBIAN_FRONTEND=noninteractive'
else
	echo "You are not root and there is no sudo: run these yourself." >&2
	exit 1
fi
if [ -n "$missing" ]; then
	$as_root $update
	$as_root $install
fi
[ -n "$unpack" ] || exit 0
mkdir -p "$directory"
cd "$directory"
[ -n "$missing" ] || $as_root $update || true
for p in $unpack; do
	if apt-get download "$p" && dpkg-deb -x "$p"_*.deb .; then
		rm "$p"_*.deb
	else
		echo "$p is not available."
	fi
done
