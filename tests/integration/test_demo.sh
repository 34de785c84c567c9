#!/bin/sh
# make demo, without installing and building: shows functions by name, writes an
# envelope, and ends the processes that it started, also when it is interrupted.
set -eu

BUILD=$(realpath "$BUILD")
export BUILD
demo=$(realpath tests/tools/demo.sh)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail()
{
	cat output
	echo "$1"
	exit 1
}

# Checks that the server that output names has ended.
server_is_gone()
{
	server=$(sed -n 's/.* running as process \([0-9]*\).*/\1/p' output)
	[ -n "$server" ] || fail "no server"
	! kill -0 "$server" 2>/dev/null || fail "the server is still there"
}

"$demo" >output 2>&1 || fail "status $?"
grep -q ' zslInsert  *redis-server$' output || fail "no known function"
server_is_gone
envelope=$(echo sentry-profd-*/000001-*.envelope)
[ "$(wc -l <"$envelope")" -eq 3 ] || fail "$envelope: not three lines"
grep -q zslInsert "$envelope" || fail "$envelope: no known function"
page=$(sed -n 's/.* for a browser: //p' output)
head -c 15 "$page" | grep -qi '^<!doctype html>' || fail "$page: no page"
sed -n 2p "$envelope" | grep -q '"type":"profile_chunk"' || fail "no chunk"

# ^C, which a terminal sends to the script and all that it runs: they get a
# session of their own. What a shell starts by & ignores it, unless told not to.
# The pipe ends the wait when the profiling has begun.
mkfifo pipe
setsid env --default-signal=INT DEMO_SECONDS=3600 "$demo" >pipe 2>&1 &
demo_pid=$!
exec 3<pipe
: >output
while read -r line <&3; do
	echo "$line" >>output
	case $line in
	'$ '*) break ;;
	esac
done
server=$(sed -n 's/.* running as process \([0-9]*\).*/\1/p' output)
while grep -q '^TracerPid:.0$' /proc/$server/status; do
	sleep 0.1
done
kill -INT -$demo_pid
cat <&3 >>output
status=0
wait $demo_pid || status=$?
[ $status -eq 130 ] || fail "status $status after ^C"
grep -q '^[0-9]* envelopes* in ' output || fail "no orderly end after ^C"
server_is_gone
