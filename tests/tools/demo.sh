#!/bin/sh
# make demo: profiles a redis-server under load for 5 seconds, or DEMO_SECONDS,
# and makes a page of the profile. Ends all processes that it started, even at ^C.
set -eu

seconds=${DEMO_SECONDS:-5}
build=${BUILD:-build}
dir=$(mktemp -d)
socket=$dir/socket
server=
load=
status=1

end()
{
	trap - EXIT INT TERM
	for pid in $load $server; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$dir"
	exit $status
}
trap end EXIT
trap 'status=130; end' INT
trap 'status=143; end' TERM

# Debian has one executable for redis-server and redis-check-rdb, which acts by
# its name. The copy gives the process and its module the right name.
cp "$(command -v redis-server || command -v redis-check-rdb)" \
	"$dir/redis-server"
"$dir/redis-server" --port 0 --unixsocket "$socket" --save '' --dir "$dir" \
	>"$dir/log" 2>&1 </dev/null &
server=$!
tries=0
until redis-cli -s "$socket" ping >/dev/null 2>&1; do
	tries=$((tries + 1))
	if [ $tries -gt 100 ]; then
		echo "redis-server does not start:" >&2
		cat "$dir/log" >&2
		exit 1
	fi
	sleep 0.1
done

# Two leaderboards of about 4,000 players, and clients that request their sum all
# the time: this work is in functions whose names every build of redis keeps.
for i in 1 2; do
	redis-benchmark -s "$socket" -q -n 4000 -r 100000 \
		zadd board:$i __rand_int__ player:__rand_int__ >/dev/null
done
redis-benchmark -s "$socket" -q -l -n 1000000 -c 4 \
	zunionstore sum 2 board:1 board:2 >/dev/null 2>&1 </dev/null &
load=$!

# The directory is named here, so that the page can be made from it below.
made=sentry-profd-$(date +%Y%m%d-%H%M%S)
set -- "$build/sentry-profd" --pid $server --duration $seconds --output "$made"
# With Yama a user may trace only descendants of the tracer.
yama=$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)
if [ "$(id -u)" -ne 0 ] && [ "$yama" -ne 0 ]; then
	set -- sudo "$@"
	sudo=sudo
fi

echo "redis-server is running as process $server, adding up scores for 4 clients."
echo "Profiling process $server for $seconds seconds:"
echo
echo "\$ $*"
status=0
"$@" || status=$?
[ $status -eq 0 ] || exit
# With sudo the directory belongs to root.
${sudo-} "$build/sentry-profctl" convert "$made" -o "$made/profile.html"
cat <<END

The same as a flame graph, for a browser: $made/profile.html
To send profiles to Sentry: $build/sentry-profd --pid PID --dsn DSN
END
