/*
 * Works in main() for so many milliseconds of processor time, and ends.
 *
 *   brief MS
 */
#include "target.h"

static volatile uint64_t sink;

int main(int argc, char **argv)
{
	const uint64_t ns = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000000u : 0;

	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < ns)
		sink = burn(sink, 1000);
	return EXIT_SUCCESS;
}
