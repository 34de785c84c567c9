/*
 * unwind PID HZ TICKS: measures what a sample costs after the stop. Records the process for this
 * number of ticks, runs the records through the code of unwind and ship, and prints a line of
 * JSON: medians, in nanoseconds per sample.
 *
 * Cold caches are the state in which the daemon works: other programs have used the processor's
 * caches since its last run, and another processor has written the records.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/aggregate/aggregate.h"
#include "lib/base/clock.h"
#include "lib/ship/package.h"
#include "proto/chunk_v2.h"
#include "tests/bench/beside.h"
#include "tests/bench/recorded.h"

/* The number of ticks that capture hands over at a time. */
#define BATCH_TICKS 10
#define FRAMES_MAX  512
#define RING_BYTES  (16u << 20)
#define PAGE_BYTES  4096
#define CACHE_LINE  64
#define CHUNK_US    (60 * UINT64_C(1000000))

/* Larger than the caches of a processor. */
#define EVICT_BYTES (8u << 20)

/* Warm caches: so few stacks that the caches hold them, repeatedly. */
#define WARM_SAMPLES 64
#define WARM_ROUNDS  400

#define PACKED_BYTES_MAX (64u << 20)
#define VALUES_MAX	 4096

static struct recorded records;
static struct unwind_stack stack;
static volatile uint64_t sink;

static _Noreturn void fail(const char *what)
{
	(void)fprintf(stderr, "%s fails\n", what);
	exit(EXIT_FAILURE);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, size_t n)
{
	if (n == 0)
		fail("recording: no samples:");
	qsort(values, n, sizeof(*values), compare);
	return values[n / 2];
}

static void evict(void)
{
	static uint8_t *bytes;

	if (bytes == NULL)
		bytes = malloc(EVICT_BYTES);
	if (bytes == NULL)
		fail("malloc");
	for (size_t i = 0; i < EVICT_BYTES; i += CACHE_LINE)
		bytes[i]++;
}

static void walk(const struct record_sample *sample)
{
	if (unwind_walk(records.space, sample, sample->h.ring.size, FRAMES_MAX, &stack) < 0)
		fail("unwind_walk");
}

/* Reads a byte of each cache line of the stack: what a walk costs at least. */
static void read_stack(const struct record_sample *sample)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < sample->stack_size; i += CACHE_LINE)
		sum += sample->stack[i];
	sink += sum;
}

static struct aggregate *open_chunk(uint64_t chunk_us)
{
	const struct aggregate_options options = {
		.chunk_us = chunk_us,
		.chunk_bytes = SIZE_MAX,
		.main_path = "",
		.main_argv0 = "",
	};
	struct aggregate *a;

	if (aggregate_new(&options, records.space, &a) < 0)
		fail("aggregate_new");
	return a;
}

/* Adds a record to the aggregate, with times that are shift_ns later. */
static enum profile_state state_of(uint32_t flags)
{
	if (flags & SAMPLE_RUNNING)
		return PROFILE_RUNNING;
	return flags & SAMPLE_READY ? PROFILE_READY : PROFILE_WAITING;
}

static void aggregate_record(struct aggregate *a, const struct record *record, uint64_t shift_ns)
{
	const struct record_thread *thread = (const void *)record;
	const struct record_sample *sample = (const void *)record;
	const struct record_tick *tick = (const void *)record;
	uint64_t time_ns = record->time_ns + shift_ns;
	int r = 0;

	switch ((enum record_type)record->ring.type) {
	case RECORD_TICK:
		(void)!aggregate_tick(a, time_ns, tick->settled_ns + shift_ns, tick->elapsed_ticks);
		break;
	case RECORD_THREAD:
		r = aggregate_thread(a, record->tid, thread->is_main, thread->comm,
				     sizeof(thread->comm));
		break;
	case RECORD_SAMPLE:
		walk(sample);
		r = aggregate_sample(a, record->tid, time_ns, &stack, state_of(sample->flags));
		break;
	case RECORD_MISSED:
		r = aggregate_missed(a, record->tid, time_ns);
		break;
	case RECORD_READY:
		r = aggregate_state(a, record->tid, time_ns, PROFILE_READY);
		break;
	case RECORD_RUNNING:
		r = aggregate_running(a, record->tid, time_ns);
		break;
	case RECORD_WAITING:
		r = aggregate_state(a, record->tid, time_ns, PROFILE_WAITING);
		break;
	case RECORD_EXIT:
		r = aggregate_exit(a, record->tid, time_ns);
		break;
	case RECORD_WATCHED:
	case RECORD_EXEC:
	case RECORD_RESET:
	case RECORD_END:
		break;
	}
	if (r < 0)
		fail("a record");
}

enum work { READ, WALK, AGGREGATE };

/* Writes a batch to the ring, from record i on. Returns the first record of the next batch. */
static size_t write_batch(struct ring_writer *w, size_t i, uint64_t *ret_n)
{
	uint64_t ticks = 0, n = 0;

	for (; i < records.n && ticks < BATCH_TICKS; i++) {
		const struct record *record = recorded_at(&records, i);
		void *room;

		if (ring_reserve(w, record->ring.size, &room) < 0)
			fail("ring_reserve");
		memcpy(room, record, record->ring.size);
		ring_commit(w, record->ring.type, record->ring.size);
		ticks += record->ring.type == RECORD_TICK;
		n += record->ring.type == RECORD_SAMPLE;
	}
	*ret_n = n;
	return i;
}

static void read_batch(struct ring_reader *reader, enum work work, struct aggregate *a)
{
	const struct ring_record *record;
	size_t size;

	while (ring_next(reader, &record, &size) > 0) {
		if (work == AGGREGATE)
			aggregate_record(a, (const void *)record, 0);
		else if (record->type == RECORD_SAMPLE && work == READ)
			read_stack((const void *)record);
		else if (record->type == RECORD_SAMPLE)
			walk((const void *)record);
		ring_release(reader, size);
	}
}

/* Returns nanoseconds per sample: the median of the batches, each with cold caches. */
static double cold(enum work work)
{
	static double values[VALUES_MAX];
	struct aggregate *a = open_chunk(CHUNK_US);
	struct ring_reader reader;
	struct ring_writer writer;
	size_t i = 0, n = 0;

	if (ring_writer_init(&writer, RING_BYTES) < 0 || ring_reader_init(&reader, writer.fd) < 0)
		fail("ring");
	/* Causes the page faults now: in the daemon they occur in the first seconds only. */
	for (size_t at = 0; at < reader.size; at += PAGE_BYTES)
		sink += reader.base[at];
	while (i < records.n && n < VALUES_MAX) {
		uint64_t start, samples;

		i = write_batch(&writer, i, &samples);
		evict();
		start = clock_mono_ns();
		if (ring_advance(&reader, writer.head) < 0)
			fail("ring_advance");
		read_batch(&reader, work, a);
		if (samples > 0)
			values[n++] = (double)(clock_mono_ns() - start) / (double)samples;
		if (ring_credit(&writer, reader.tail) < 0)
			fail("ring_credit");
	}
	ring_reader_fini(&reader);
	ring_writer_fini(&writer);
	aggregate_free(a);
	return median(values, n);
}

/*
 * Returns nanoseconds per sample with warm caches. strangers: each walk is that of a new thread,
 * so the unwinder has no last walk to reuse.
 */
static double warm(struct record_sample **samples, size_t n, bool strangers)
{
	static double values[WARM_ROUNDS];
	uint32_t tid = 1;

	for (size_t round = 0; round < WARM_ROUNDS; round++) {
		uint64_t start = clock_mono_ns();

		for (size_t i = 0; i < n; i++) {
			if (strangers)
				samples[i]->h.tid = tid++;
			walk(samples[i]);
		}
		values[round] = (double)(clock_mono_ns() - start) / (double)n;
	}
	return median(values, WARM_ROUNDS);
}

struct chunk_cost {
	uint64_t samples, bytes, packed_bytes;
	double close_ns, encode_ns, copy_ns, pack_ns;
};

/* Adds the records repeatedly, until they fill a chunk. Returns the number of samples. */
static uint64_t fill(struct aggregate *a, uint64_t *ret_end_ns)
{
	uint64_t samples = 0, shift_ns = 0;
	uint64_t length_ns = records.last_ns - records.first_ns;

	while (shift_ns + length_ns < CHUNK_US * NS_PER_US) {
		for (size_t i = 0; i < records.n; i++)
			aggregate_record(a, recorded_at(&records, i), shift_ns);
		samples += records.samples;
		shift_ns += length_ns;
	}
	*ret_end_ns = records.first_ns + shift_ns;
	return samples;
}

static uint64_t processor_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static double since(uint64_t start_ns, uint64_t samples)
{
	return (double)(processor_ns() - start_ns) / (double)samples;
}

static int encode(const struct profile *p, uint64_t *ret_bytes)
{
	int fd = memfd_create("chunk", MFD_CLOEXEC);
	FILE *out = fd < 0 ? NULL : fdopen(dup(fd), "w");
	off_t end;

	if (out == NULL || chunk_v2_write(p, CHUNK_V2_SERVER, out) < 0 || fclose(out) != 0)
		fail("chunk_v2_write");
	end = lseek(fd, 0, SEEK_END);
	if (end <= 0)
		fail("lseek");
	*ret_bytes = (uint64_t)end;
	return fd;
}

static struct chunk_cost chunk(void)
{
	struct aggregate *a = open_chunk(CHUNK_US);
	uint64_t end_ns;
	struct chunk_cost c = {.samples = fill(a, &end_ns)};
	struct package package = {.sdk_name = "bench", .sdk_version = "1", .platform = "native"};
	struct profile p;
	uint64_t start;
	struct buf packed;
	int fd, file;

	start = processor_ns();
	if (aggregate_close(a, end_ns, &p) < 0)
		fail("aggregate_close");
	memset(p.profiler_id, '0', sizeof(p.profiler_id) - 1);
	memset(p.chunk_id, '0', sizeof(p.chunk_id) - 1);
	p.platform = p.release = p.environment = p.sdk_name = p.sdk_version = "bench";
	sink += profile_check(&p);
	c.close_ns = since(start, c.samples);
	start = processor_ns();
	fd = encode(&p, &c.bytes);
	c.encode_ns = since(start, c.samples);
	package.payload_fd = fd;
	package.payload_size = c.bytes;
	buf_init(&packed, PACKED_BYTES_MAX);
	start = processor_ns();
	if (package_compress(&package, 0, NULL, &packed) < 0)
		fail("package_compress");
	c.pack_ns = since(start, c.samples);
	c.packed_bytes = packed.len;
	file = memfd_create("file", MFD_CLOEXEC);
	start = processor_ns();
	if (file < 0 || package_write(&package, file) < 0)
		fail("package_write");
	c.copy_ns = since(start, c.samples);
	buf_fini(&packed);
	close_fd(&file);
	close_fd(&fd);
	aggregate_free(a);
	return c;
}

int main(int argc, char **argv)
{
	struct record_sample *chosen[WARM_SAMPLES];
	uint64_t frames = 0, bytes = 0;
	struct chunk_cost c;
	struct beside b;
	pid_t tid;
	size_t n;

	if (argc != 4) {
		(void)fprintf(stderr, "usage: %s PID HZ TICKS\n", argv[0]);
		return 2;
	}
	recorded_make(&records, (pid_t)strtol(argv[1], NULL, 10),
		      NS_PER_SEC / strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10));
	for (size_t i = 0; i < records.n; i++) {
		const struct record_sample *sample = recorded_sample(&records, i);

		if (sample == NULL)
			continue;
		walk(sample);
		frames += stack.n;
		bytes += sample->stack_size;
	}
	n = recorded_choose(&records, chosen, WARM_SAMPLES);
	if (n == 0)
		fail("recording: no samples:");
	tid = (pid_t)chosen[0]->h.tid;
	printf("{\"samples\": %zu, \"frames\": %.1f, \"stack_bytes\": %.0f", records.samples,
	       (double)frames / (double)records.samples, (double)bytes / (double)records.samples);
	printf(", \"warm\": %.0f", warm(chosen, n, false));
	printf(", \"warm_stranger\": %.0f", warm(chosen, n, true));
	printf(", \"cold_read\": %.0f", cold(READ));
	printf(", \"cold_walk\": %.0f", cold(WALK));
	printf(", \"cold_all\": %.0f", cold(AGGREGATE));
	b = beside_measure(&records, tid, chosen, n);
	printf(", \"beside\": %zu, \"beside_ours\": %.0f, "
	       "\"libunwind\": %.0f, \"libunwind_same\": %zu, "
	       "\"libdwfl\": %.0f, \"libdwfl_same\": %zu, "
	       "\"libunwind_ptrace\": %.0f",
	       b.n, b.ours_ns, b.ns[OTHER_LIBUNWIND], b.same[OTHER_LIBUNWIND], b.ns[OTHER_LIBDWFL],
	       b.same[OTHER_LIBDWFL], b.ns[OTHER_PTRACE]);
	c = chunk();
	printf(", \"chunk_samples\": %llu, \"chunk_bytes\": %.1f, "
	       "\"packed_bytes\": %.1f, \"close\": %.0f, \"encode\": %.0f, "
	       "\"copy\": %.0f, \"pack\": %.0f",
	       (unsigned long long)c.samples, (double)c.bytes / (double)c.samples,
	       (double)c.packed_bytes / (double)c.samples, c.close_ns, c.encode_ns, c.copy_ns,
	       c.pack_ns);
	printf("}\n");
	return EXIT_SUCCESS;
}
