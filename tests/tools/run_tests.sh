#!/bin/sh
# Runs tests one after another. Usage: run_tests.sh PATTERN TEST...
#
# A line a test, the output only of those that fail, and the sum at the end. A
# test is a program: status 0 passed, 77 skipped (its last line says why),
# anything else failed. Those whose name does not contain PATTERN are left out.
# Whole outputs: $BUILD/log/NAME. With SECOND_TRY=1 one that fails is run once
# more; what it printed the first time stands there all the same, and the sum
# says how many needed that.
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
passed=0 failed=0 skipped=0 second=0
second_try=${SECOND_TRY:-0}
log_dir=$BUILD/log
mkdir -p "$log_dir" || exit 1

run() {
	timeout --kill-after=10 $limit_seconds "$path" >"$log" 2>&1 </dev/null
	status=$?
}

show() {
	tail -n 60 "$log" | sed 's/^/      | /'
}

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
	run
	if [ $status -ne 0 ] && [ $status -ne 77 ] && [ "$second_try" = 1 ]; then
		echo "FAIL  $name: status $status, and now once more"
		show
		run
		second=$((second + 1))
	fi
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
	[ $word != FAIL ] || show
done

echo "$passed passed, $failed failed, $skipped skipped"
[ $second -eq 0 ] || echo "$second were run a second time: look at them above"
[ $failed -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
