#!/bin/sh
# Runs tests one after another. Usage: run_tests.sh PATTERN TEST...
#
# A line a test, the output only of those that fail, and the sum at the end. A
# test is a program: status 0 passed, 77 skipped (its last line says why),
# anything else failed. Those whose name does not contain PATTERN are left out.
# Whole outputs: $BUILD/log/NAME.
set -u

# No test takes a minute where the processors are ours; a virtual machine may be
# left with a twentieth of them. One that hangs must not take the run with it.
limit_seconds=900

pattern=$1
shift
export BUILD="${BUILD:-build}"
# A test that runs out of memory on purpose is no error of AddressSanitizer.
export ASAN_OPTIONS=allocator_may_return_null=1
export PYTHONDONTWRITEBYTECODE=1
passed=0 failed=0 skipped=0
log_dir=$BUILD/log
mkdir -p "$log_dir" || exit 1

for path in "$@"; do
	name=$(echo "${path#"$BUILD"/}" | sed 's,tests/,,')
	case $name in
	*"$pattern"*) ;;
	*) continue ;;
	esac
	case $path in
	/*) ;;
	*) path=./$path ;;
	esac
	log=$log_dir/$(echo "$name" | tr / -)
	start=$(date +%s%N)
	timeout --kill-after=10 $limit_seconds "$path" >"$log" 2>&1 </dev/null
	status=$?
	tenths=$((($(date +%s%N) - start) / 100000000))
	note=
	case $status in
	0)
		word=ok
		passed=$((passed + 1))
		;;
	77)
		word=skip
		note=": $(tail -n 1 "$log")"
		skipped=$((skipped + 1))
		;;
	*)
		word=FAIL
		note=": status $status"
		[ $status -ne 124 ] || note=": hangs, ended after $limit_seconds s"
		failed=$((failed + 1))
		;;
	esac
	printf '%-5s %s (%d.%d s)%s\n' $word "$name" \
		$((tenths / 10)) $((tenths % 10)) "$note"
	[ $word != FAIL ] || tail -n 60 "$log" | sed 's/^/      | /'
done

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
