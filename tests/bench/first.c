/*
 * first PID HZ TICKS: measures the first stack of a process, names included. Records the process
 * for this number of ticks, chooses the sample whose frames are in the largest files, and stops
 * the process. Then sentry-profd's unwinder, libdwfl and libunwind in turn unwind this sample and
 * name its frames with empty caches: each reads the maps, opens the files and reads what it needs.
 * Prints a line of JSON: medians of CPU time and elapsed time, in milliseconds.
 *
 * The files are in the page cache, since the process has just executed them.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "tests/bench/others.h"
#include "tests/bench/recorded.h"

#define ROUNDS	   5
#define FRAMES_MAX 512
#define IMAGES_MAX 64
#define NAME_BYTES 4096

/* The number of sentry-profd's unwinder, beside enum other. */
#define OURS OTHER_N
static const char *const who[] = {
	[OTHER_LIBUNWIND] = "libunwind",
	[OTHER_LIBDWFL] = "libdwfl",
	[OURS] = "ours",
};

static struct recorded records;
static struct unwind_stack stack;

static _Noreturn void fail(const char *what)
{
	(void)fprintf(stderr, "%s fails\n", what);
	exit(EXIT_FAILURE);
}

static void walk(const struct recorded *r, const struct record_sample *sample)
{
	if (unwind_walk(r->space, sample, sample->h.ring.size, FRAMES_MAX, &stack) < 0)
		fail("unwind_walk");
}

static uint64_t lookup(const struct unwind_frame *f)
{
	return f->is_leaf ? f->addr : f->addr - 1;
}

/* Returns the bytes, in memory, of the files of the last walk's frames. */
static uint64_t bytes_of_images(const struct recorded *r)
{
	uint64_t seen[IMAGES_MAX];
	uint64_t bytes = 0;
	size_t n = 0;

	for (size_t i = 0; i < stack.n && n < IMAGES_MAX; i++) {
		struct unwind_image image;
		size_t k = 0;

		if (unwind_image_at(r->space, lookup(&stack.frames[i]), &image) < 0)
			continue;
		while (k < n && seen[k] != image.addr)
			k++;
		if (k < n)
			continue;
		seen[n++] = image.addr;
		bytes += image.size;
	}
	return bytes;
}

/* Returns the bytes of files that the process has mapped as executable. */
static uint64_t text_bytes(pid_t pid)
{
	char path[64], line[4096];
	uint64_t bytes = 0;
	FILE *maps;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (maps == NULL)
		fail(path);
	while (fgets(line, sizeof(line), maps) != NULL) {
		uint64_t from, to;
		char mode[5];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to, mode) == 3 &&
		    mode[2] == 'x' && strchr(line, '/') != NULL)
			bytes += to - from;
	}
	(void)fclose(maps);
	return bytes;
}

/*
 * Returns a copy of the sample with all registers whose stack reaches the root and whose files are
 * the largest.
 */
static struct record_sample *choose(uint64_t *ret_bytes, uint64_t *ret_frames)
{
	const uint64_t all = (UINT64_C(2) << SAMPLE_X86_64_RIP) - 1;
	const struct record_sample *best = NULL;
	struct record_sample *copy;

	*ret_bytes = 0;
	for (size_t i = 0; i < records.n; i++) {
		const struct record_sample *sample = recorded_sample(&records, i);
		uint64_t bytes;

		if (sample == NULL || sample->regs_known != all)
			continue;
		walk(&records, sample);
		bytes = bytes_of_images(&records);
		if (stack.end != UNWIND_END_ROOT || bytes <= *ret_bytes)
			continue;
		best = sample;
		*ret_bytes = bytes;
		*ret_frames = stack.n;
	}
	if (best == NULL)
		fail("recording: no stack reaches its root:");
	copy = malloc(best->h.ring.size);
	if (copy == NULL)
		fail("malloc");
	memcpy(copy, best, best->h.ring.size);
	return copy;
}

static size_t name_ours(const struct record_sample *sample)
{
	static char name[NAME_BYTES];
	struct recorded fresh;
	size_t named = 0;

	recorded_open(&fresh, records.pid);
	walk(&fresh, sample);
	for (size_t i = 0; i < stack.n; i++) {
		struct unwind_image image;
		const char *raw;
		uint64_t offset;

		if (unwind_image_at(fresh.space, lookup(&stack.frames[i]), &image) < 0 ||
		    unwind_symbol_at(fresh.space, lookup(&stack.frames[i]), &raw, &offset) < 0)
			continue;
		(void)unwind_demangle(raw, true, name, sizeof(name));
		named++;
	}
	recorded_close(&fresh);
	return named;
}

static size_t name_theirs(enum other other, const struct record_sample *sample)
{
	size_t named;

	others_open_one(other, records.pid);
	named = others_name(other, sample, FRAMES_MAX);
	others_close_one(other);
	return named;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	double cpu[OURS + 1][ROUNDS], wall[OURS + 1][ROUNDS];
	size_t named[OURS + 1] = {0};
	struct record_sample *sample;
	uint64_t bytes, frames = 0;
	pid_t pid;

	if (argc != 4) {
		(void)fprintf(stderr, "usage: %s PID HZ TICKS\n", argv[0]);
		return 2;
	}
	pid = (pid_t)strtol(argv[1], NULL, 10);
	recorded_make(&records, pid, NS_PER_SEC / strtoul(argv[2], NULL, 10),
		      strtoul(argv[3], NULL, 10));
	/* The process must live until the end, and use no processor. */
	if (kill(pid, SIGSTOP) < 0)
		fail("kill");
	sample = choose(&bytes, &frames);
	for (size_t round = 0; round < ROUNDS; round++) {
		for (unsigned int by = 0; by <= OURS; by++) {
			uint64_t wall_ns = clock_mono_ns();
			uint64_t cpu_ns = clock_cpu_ns();

			if (who[by] == NULL)
				continue;
			named[by] = by == OURS ? name_ours(sample)
					       : name_theirs((enum other)by, sample);
			cpu[by][round] = (double)(clock_cpu_ns() - cpu_ns);
			wall[by][round] = (double)(clock_mono_ns() - wall_ns);
		}
	}
	printf("{\"text_bytes\": %" PRIu64 ", \"image_bytes\": %" PRIu64 ", \"frames\": %" PRIu64,
	       text_bytes(pid), bytes, frames);
	for (unsigned int by = 0; by <= OURS; by++) {
		if (who[by] == NULL)
			continue;
		printf(", \"%s\": {\"cpu_ms\": %.2f, \"wall_ms\": %.2f, "
		       "\"named\": %zu}",
		       who[by], median(cpu[by]) / 1e6, median(wall[by]) / 1e6, named[by]);
	}
	printf("}\n");
	(void)kill(pid, SIGCONT);
	free(sample);
	return EXIT_SUCCESS;
}
