/*
 * The largest supported load: 100 threads that run for up to 60 s at 101 Hz, with different stacks
 * at each tick. Aggregating it and writing the chunks takes less than 64 MB of memory, and no chunk
 * is more than 5 % larger than the size at which it is due. BULK_PRINT in the environment: print
 * the figures.
 */
#include "lib/aggregate/aggregate.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "proto/chunk_v2.h"
#include "tests/unit/aggregate/fake_unwind.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define THREADS	    100
#define HZ	    101
#define CHUNK_BYTES (20u * 1000 * 1000)
#define RSS_KB_MAX  (64 * 1000)

/* The shape of the stacks; depth counts the frames that vary. */
static const struct shape {
	const char *name;
	size_t common, depth;
	uint64_t choices; /* number of functions that a caller calls */
	/* Of the load. A chunk of the deep stacks is due after a second: ten such chunks. */
	unsigned int seconds;
} shapes[] = {
	/* A server: the outer frames are the same, a few inner ones differ. */
	{"server", 20, 6, 4, 60},
	/* A compiler: deep stacks with few frames in common. */
	{"compiler", 10, 40, 3, 12},
	/* Noise: any two stacks share only the root. */
	{"noise", 1, 30, 1000, 12},
	/* A loop: two leaves in turn, so the chunk has many samples and two stacks. */
	{"spin", 20, 1, 2, 60},
};

static struct unwind_stack stack;

static void make_stack(const struct shape *shape, uint64_t *state, uint64_t tick)
{
	size_t n = shape->common + shape->depth;
	uint64_t addr = 0x555555550000;

	stack.n = n;
	for (size_t i = 0; i < n; i++) {
		struct unwind_frame *f = &stack.frames[n - 1 - i];
		uint64_t choice = 0;

		if (i >= shape->common)
			choice = shape->choices == 2 ? tick % 2
						     : random_next(state) % shape->choices;
		addr = 0x555555550000 + 0x100000 * i + 0x40 * choice;
		*f = (struct unwind_frame){addr, i == n - 1, 0};
	}
}

static size_t samples, chunks;
static long bytes;

static void write_chunk(struct aggregate *a, uint64_t end_ns, FILE *out)
{
	struct profile p;
	long size;

	rewind(out);
	OK(aggregate_close(a, end_ns, &p));
	for (size_t i = 0; i < 32; i++)
		p.profiler_id[i] = p.chunk_id[i] = 'a';
	p.platform = p.release = p.environment = "x";
	p.sdk_name = p.sdk_version = "x";
	ck_assert_int_eq(profile_check(&p), PROFILE_OK);
	OK(chunk_v2_write(&p, CHUNK_V2_SERVER, out));
	size = ftell(out);
	/* A chunk is closed soon after it has reached the size at which it is due. */
	ck_assert_int_lt(size, CHUNK_BYTES + CHUNK_BYTES / 20);
	samples += p.n_samples;
	bytes += size;
	chunks++;
	OK(aggregate_next(a));
}

TESTS(largest_load, array_size(shapes))
{
	static const uint8_t id[20] = {1};
	const struct fake_image image = {0,
					 UINT64_MAX,
					 {.path = "/opt/app/program",
					  .id = id,
					  .id_size = 20,
					  .addr = 0x555555550000,
					  .size = 1 << 30}};
	const struct fake_symbol symbol = {0, UINT64_MAX, "_ZN3app9component8functionERKSsb"};
	struct unwind_space space = {
		.images = &image, .n_images = 1, .symbols = &symbol, .n_symbols = 1};
	const struct aggregate_options options = {
		.chunk_us = 60000000,
		.chunk_bytes = CHUNK_BYTES,
		.wall_offset_us = UINT64_C(1700000000000000),
		.main_path = "/opt/app/program",
		.main_argv0 = "",
	};
	struct aggregate *a = NULL;
	struct rusage usage;
	/* The pages of a memfd do not count as the process's memory. */
	FILE *out = fdopen(memfd_create("chunk", MFD_CLOEXEC), "w");
	const uint64_t ticks = shapes[_i].seconds * HZ;
	uint64_t state = 1, time_ns = 0, last_ns = 0;

	ck_assert_ptr_nonnull(out);
	OK(aggregate_new(&options, &space, &a));
	for (uint64_t tick = 0; tick <= ticks; tick++) {
		time_ns = NS_PER_SEC + tick * NS_PER_SEC / HZ;
		for (uint32_t tid = 1; tid <= THREADS; tid++) {
			make_stack(&shapes[_i], &state, tick);
			OK(aggregate_sample(a, tid, time_ns, &stack, PROFILE_RUNNING));
		}
		if (!aggregate_tick(a, time_ns, time_ns, 1))
			continue;
		last_ns = time_ns;
		write_chunk(a, time_ns, out);
	}
	/* The last chunk. */
	if (time_ns > last_ns)
		write_chunk(a, time_ns, out);
	OK(getrusage(RUSAGE_SELF, &usage));
	if (getenv("BULK_PRINT") != NULL)
		(void)fprintf(stderr,
			      "%s: %zu chunks, %ld bytes, %zu samples, "
			      "%.2f s user, %ld KB\n",
			      shapes[_i].name, chunks, bytes, samples,
			      (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6,
			      usage.ru_maxrss);
	ck_assert_int_lt(usage.ru_maxrss, RSS_KB_MAX);
	ck_assert_uint_gt(samples, ticks * THREADS * 9 / 10);
	aggregate_free(a);
	(void)fclose(out);
}
