#!/bin/sh
# Fuzzes each target whose name contains PATTERN for SECONDS, one after another.
# Usage: fuzz.sh PATTERN SECONDS
#
# Inputs that break a target are kept in $BUILD/fuzzer, under the target's name.
set -u

pattern=$1 seconds=$2
found=$BUILD/fuzzer/found
export ASAN_OPTIONS=allocator_may_return_null=1
status=1

for path in "$BUILD"/fuzzer/fuzz/*; do
	name=${path##*/}
	case $name in
	*"$pattern"*) ;;
	*) continue ;;
	esac
	[ $status -ne 1 ] || status=0
	mkdir -p "$found/$name"
	echo "$name, $seconds seconds"
	# The memory limit is above the code's own limits, some of which are 1 GB.
	if ! nice "$path" -max_total_time="$seconds" -max_len=65536 \
		-rss_limit_mb=4096 -timeout=30 -print_final_stats=1 \
		-artifact_prefix="$BUILD/fuzzer/$name-" \
		"$found/$name" "tests/fuzz/corpus/$name" \
		>"$found/$name.log" 2>&1; then
		status=2
		tail -n 40 "$found/$name.log"
	fi
	grep -E 'stat::(number_of_executed|peak)|^Done' "$found/$name.log"
done
exit $status
