#include "tests/bench/recorded.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "lib/base/buf.h"
#include "lib/base/clock.h"
#include "lib/capture/capture.h"
#include "lib/capture/reap.h"

#define RING_BYTES     (16u << 20)
#define MAPS_BYTES_MAX (16u << 20)
#define CACHE_BYTES    (256u << 20)
#define TARGET	       1

/* Ticks without records, in which stack-size hints take effect. */
#define WARM_TICKS 10

#define FRAMES_MAX 512

/* The recording ends after this multiple of the ticks, whatever it has. */
#define LONGER_MOST 100

static _Noreturn void fail(const char *what, int error)
{
	(void)fprintf(stderr, "%s: %s\n", what, strerror(error));
	exit(EXIT_FAILURE);
}

/* Copies memory without a file, such as the vDSO, to a memfd. */
static int copy_memory(pid_t pid, uint64_t start, uint64_t end, int *ret_fd)
{
	size_t size = (size_t)(end - start);
	int fd = memfd_create("copy", MFD_CLOEXEC);
	void *bytes = malloc(size);
	struct iovec local = {bytes, size};
	struct iovec remote = {(void *)(uintptr_t)start, size};
	int r = 0;

	if (fd < 0 || bytes == NULL ||
	    process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)size ||
	    write(fd, bytes, size) != (ssize_t)size)
		r = -EIO;
	free(bytes);
	if (r < 0)
		close_fd(&fd);
	*ret_fd = fd;
	return r;
}

static int open_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	const struct recorded *r = ctx;
	char path[128];

	(void)snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)r->pid,
		       start, end);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? copy_memory(r->pid, start, end, ret_fd) : 0;
}

static const struct unwind_files files = {.image = open_image};

void recorded_open(struct recorded *r, pid_t pid)
{
	const struct unwind_cache_options options = {.max_bytes = CACHE_BYTES};
	char path[64];
	struct buf text;
	int fd, error;

	*r = (struct recorded){.pid = pid};
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail(path, errno);
	buf_init(&text, MAPS_BYTES_MAX);
	error = buf_read_fd(&text, fd);
	close_fd(&fd);
	if (error == 0)
		error = unwind_cache_new(&options, &r->cache);
	if (error == 0)
		error = unwind_space_new(r->cache, &files, r, &r->space);
	if (error == 0)
		error = unwind_space_set_maps(r->space, buf_string(&text), text.len);
	buf_fini(&text);
	if (error < 0)
		fail("the target's space", -error);
}

void recorded_close(struct recorded *r)
{
	unwind_space_free(r->space);
	unwind_cache_free(r->cache);
}

static bool is_whole(const struct ring_record *record)
{
	const uint64_t all = (UINT64_C(2) << SAMPLE_X86_64_RIP) - 1;

	return record->type == RECORD_SAMPLE &&
	       ((const struct record_sample *)(const void *)record)->regs_known == all;
}

static void keep(struct recorded *r, const struct ring_record *record, size_t size)
{
	const struct record *h = (const void *)record;

	if (r->size + size > r->room) {
		r->room = 2 * r->room + size;
		r->bytes = realloc(r->bytes, r->room);
	}
	if ((r->n & (r->n + 1)) == 0)
		r->at = reallocarray(r->at, 2 * (r->n + 1), sizeof(*r->at));
	if (r->bytes == NULL || r->at == NULL)
		fail("records", ENOMEM);
	memcpy(r->bytes + r->size, record, size);
	r->at[r->n++] = r->size;
	r->size += size;
	r->samples += record->type == RECORD_SAMPLE;
	r->whole += is_whole(record);
	if (record->type == RECORD_TICK) {
		r->last_ns = h->time_ns;
		if (r->first_ns == 0)
			r->first_ns = h->time_ns;
	}
}

/* Sends a stack-size hint, as unwind does: capture then copies no more than a walk needs. */
static void hint(struct recorded *r, struct capture *capture, const struct capture_sink *sink,
		 const struct record_sample *sample, size_t size)
{
	static struct unwind_stack stack;

	if (unwind_walk(r->space, sample, size, FRAMES_MAX, &stack) == 0 &&
	    stack.end == UNWIND_END_ROOT)
		capture_hint(capture, sink, TARGET, sample->h.tid, sample->stack_addr,
			     stack.stack_top, 0);
}

static void take(struct recorded *r, struct capture *capture, struct capture_sink *sink,
		 struct ring_reader *reader, bool warm)
{
	const struct ring_record *record;
	size_t size;
	int error = ring_advance(reader, sink->ring.head);

	while (error == 0 && (error = ring_next(reader, &record, &size)) > 0) {
		if (record->type == RECORD_SAMPLE && !warm)
			hint(r, capture, sink, (const void *)record, size);
		/* Names of threads are needed, also those of the first ticks. */
		if (record->type == RECORD_THREAD || warm)
			keep(r, record, size);
		ring_release(reader, size);
		error = 0;
	}
	if (error < 0 || ring_credit(&sink->ring, reader->tail) < 0)
		fail("the ring", EPROTO);
}

static void wait_for_stops(struct capture *capture, int fd, uint64_t until_ns)
{
	struct signalfd_siginfo info;
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	bool more = true;
	uint64_t now;

	while ((now = clock_mono_ns()) < until_ns) {
		struct timespec left = {.tv_nsec = (long)(until_ns - now) % (long)NS_PER_SEC};

		if (!more && ppoll(&poll_fd, 1, &left, NULL) <= 0)
			continue;
		while (read(fd, &info, sizeof(info)) > 0)
			;
		more = capture_reap(capture);
	}
}

static void no_event(void *ctx, uint32_t target, enum capture_event event)
{
	(void)ctx;
	(void)target;
	(void)event;
}

void recorded_make(struct recorded *r, pid_t pid, uint64_t period_ns, uint64_t ticks)
{
	/* Static, since capture writes to them until the process exits. */
	static struct capture_counters counters;
	static struct capture_beat beat;
	const struct capture_options options = {
		.now_ns = clock_mono_ns,
		.process_ns = clock_process_ns,
		.switches = clock_switches,
		.beat = &beat,
		.event = no_event,
	};
	struct capture_sink sink = {0};
	struct ring_reader reader;
	struct capture *capture;
	const struct sched_param fifo = {.sched_priority = 1}, other = {0};
	uint64_t start = clock_mono_ns();
	sigset_t signals;
	int fd, pidfd, error;

	recorded_open(r, pid);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0 || sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
		fail("pidfd_open", errno);
	fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		fail("signalfd", errno);
	error = ring_writer_init(&sink.ring, RING_BYTES);
	if (error == 0)
		error = ring_reader_init(&reader, sink.ring.fd);
	if (error == 0)
		error = capture_new(&options, &capture);
	if (error == 0)
		error = capture_add(capture, TARGET, pid, pidfd, &sink, &counters, 0);
	if (error < 0)
		fail("the target", -error);
	/* As the daemon's capture. If this is refused, there are fewer samples. */
	(void)sched_setscheduler(0, SCHED_FIFO, &fifo);
	for (uint64_t tick = 1;
	     tick <= ticks + WARM_TICKS || (r->whole < ticks && tick < LONGER_MOST * ticks);
	     tick++) {
		uint64_t due = start + tick * period_ns;

		wait_for_stops(capture, fd, due);
		capture_tick(capture, &(const struct tick){.number = tick,
							   .begin_ns = due,
							   .period_ns = period_ns,
							   .due_ns = due});
		take(r, capture, &sink, &reader, tick > WARM_TICKS);
	}
	wait_for_stops(capture, fd, clock_mono_ns() + period_ns);
	take(r, capture, &sink, &reader, true);
	(void)sched_setscheduler(0, SCHED_OTHER, &other);
	/* No thread is interrupted any more. The kernel detaches at the exit. */
	capture_free(capture);
	ring_reader_fini(&reader);
	ring_writer_fini(&sink.ring);
	close_fd(&fd);
	close_fd(&pidfd);
}

const struct record_sample *recorded_sample(const struct recorded *r, size_t i)
{
	const struct record *record = recorded_at(r, i);

	return record->ring.type == RECORD_SAMPLE ? (const void *)record : NULL;
}

size_t recorded_choose(const struct recorded *r, struct record_sample **ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n && n < max; i++) {
		const struct record_sample *sample = recorded_sample(r, i);

		if (sample == NULL)
			continue;
		ret[n] = malloc(sample->h.ring.size);
		if (ret[n] == NULL)
			fail("malloc", ENOMEM);
		memcpy(ret[n++], sample, sample->h.ring.size);
	}
	return n;
}
