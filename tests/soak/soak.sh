#!/bin/sh
# The long storms, which make check runs in a short form only.
#
# Usage: soak.sh. KILLS (1000) SIGKILLs to our processes at random moments,
# STORM_SECONDS (30) of 1,000 threads a second, and for MINUTES (10) the tests of
# signals, stops and execs over and over, from new seeds. Stops at the first
# failure; a seed is printed with it.
set -eu

export KILLS="${KILLS:-1000}" STORM_SECONDS="${STORM_SECONDS:-30}"
export PYTHONDONTWRITEBYTECODE=1
tests=tests/integration
end=$(($(date +%s) + ${MINUTES:-10} * 60))

run()
{
	echo "== $*"
	python3 "$@"
}

run $tests/test_life_storm.py
run $tests/test_kill.py
while [ "$(date +%s)" -lt $end ]; do
	for name in signals jobs execs; do
		run $tests/test_life_$name.py
	done
done
echo "nothing was harmed"
