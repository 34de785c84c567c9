/*
 * A busy thread, which reads the clock all the time. A time in which the thread did not run is a
 * gap between two readings.
 */
#include "tests/bench/target.h"

#include <sys/resource.h>

/* Shorter gaps are ignored: a timer interrupt takes 1 to 3 us. */
#define GAP_MIN_NS   1000
#define CALIBRATE_NS (50 * NS_PER_MS)

static double ns_per_step;

/* Reads the clock, in steps of ns_per_step. Makes no call, so that the stack has 30 frames. */
static inline uint64_t read_steps(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t steps;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(steps));
	return steps;
#else
	return clock_mono_ns();
#endif
}

void gaps_calibrate(void)
{
	uint64_t from_ns = clock_mono_ns(), from = read_steps(), to_ns;

	do
		to_ns = clock_mono_ns();
	while (to_ns - from_ns < CALIBRATE_NS);
	ns_per_step = (double)(to_ns - from_ns) / (double)(read_steps() - from);
}

static size_t bucket(uint64_t ns)
{
	unsigned int octave = 63 - (unsigned int)__builtin_clzll(ns | 1);
	size_t sub;

	if (octave < GAP_SUB_BITS)
		return 0;
	if (octave >= GAP_OCTAVES)
		return GAP_BUCKETS - 1;
	sub = (ns >> (octave - GAP_SUB_BITS)) & ((1u << GAP_SUB_BITS) - 1);
	return ((size_t)octave << GAP_SUB_BITS) + sub;
}

static void add_gap(struct worker *w, enum gap kind, uint64_t ns)
{
	add(&w->gaps[kind][bucket(ns)], 1);
	add(&w->gap_ns[kind], ns);
}

/* Returns the second number of schedstat, the time in which the thread was runnable, in ns. */
static uint64_t read_waited(int fd)
{
	char line[128], *end;
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);

	if (n <= 0)
		return 0;
	line[n] = '\0';
	(void)strtoull(line, &end, 10);
	return strtoull(end, NULL, 10);
}

/* Reads the kernel's counters of the calling thread into *w. */
static void read_counters(struct worker *w)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_THREAD, &usage);
	w->voluntary = usage.ru_nvcsw;
	w->involuntary = usage.ru_nivcsw;
	w->waited_ns = read_waited(w->schedstat_fd);
}

static NOINLINE void note_gap(struct worker *w, uint64_t ns)
{
	const long voluntary = w->voluntary, involuntary = w->involuntary;
	const uint64_t waited_ns = w->waited_ns;

	read_counters(w);
	if (w->voluntary != voluntary) {
		add_gap(w, GAP_STOP, ns);
		add_gap(w, GAP_STOP_NET, ns - min_u64(ns, w->waited_ns - waited_ns));
	} else if (w->involuntary != involuntary) {
		add_gap(w, GAP_PREEMPTED, ns);
	} else {
		add_gap(w, GAP_OTHER, ns);
	}
}

void busy(struct worker *w)
{
	const uint64_t gap_min = (uint64_t)(GAP_MIN_NS / ns_per_step);
	uint64_t last, x = 1, now;

	read_counters(w);
	last = read_steps();
	while (x != 0) {
		x = calculate(x) | 1;
		add(&w->rounds, 1);
		now = read_steps();
		if (now - last > gap_min) {
			note_gap(w, (uint64_t)((double)(now - last) * ns_per_step));
			now = read_steps();
		}
		last = now;
	}
}
