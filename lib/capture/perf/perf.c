#include "lib/capture/perf/perf.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/*
 * The size of a ring. The larger one is the default of perf_event_mlock_kb for each processor, all
 * processes of the user together; if that is used up, smaller rings do.
 */
#define RING_BYTES_MAX (512u * 1024)
#define RING_BYTES_MIN (128u * 1024)

/* More than any machine has, so that a wrong answer of the system costs no memory. */
#define PROCESSORS_MAX 8192

struct processor {
	int fd; /* -1: it is offline */
	struct perf_event_mmap_page *page;
	size_t mapped;
	struct perf_bytes bytes;
	bool has_record; /* the record at the tail */
	struct perf_record record;
	uint64_t count; /* of the event, at the last check */
};

struct perf {
	uint32_t stack_bytes;
	size_t ring_bytes;
	uint64_t period_ns;	   /* 0: stopped */
	bool is_old;		   /* perf_regs_known() */
	struct processor *current; /* whose record perf_next() has returned */
	size_t n;
	struct processor processors[];
};

static struct perf_event_attr attributes(const struct perf *p)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = max_u64(p->period_ns, NS_PER_MS),
		.sample_type = PERF_SAMPLE_TYPE,
		.sample_regs_user = perf_regs_mask(),
		.sample_stack_user = p->stack_bytes,
		.disabled = 1,
		.exclude_idle = 1,
		.exclude_hv = 1,
		.task = 1,
		.comm = 1,
		.comm_exec = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

static size_t index_of(const struct perf *p, const struct processor *c)
{
	return (size_t)(c - p->processors);
}

static int map_ring(const struct perf *p, struct processor *c)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *memory;

	c->mapped = page + p->ring_bytes;
	memory = mmap(NULL, c->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	c->page = memory;
	c->bytes =
		(struct perf_bytes){.base = (const uint8_t *)memory + page, .size = p->ring_bytes};
	return 0;
}

static void close_processor(struct processor *c)
{
	if (c->page != NULL)
		(void)munmap(c->page, c->mapped);
	close_fd(&c->fd);
	*c = (struct processor){.fd = -1};
}

static void start(const struct processor *c, uint64_t period_ns)
{
	if (period_ns == 0) {
		(void)ioctl(c->fd, PERF_EVENT_IOC_DISABLE, 0);
		return;
	}
	(void)ioctl(c->fd, PERF_EVENT_IOC_PERIOD, &period_ns);
	(void)ioctl(c->fd, PERF_EVENT_IOC_ENABLE, 0);
}

/* Returns -ENODEV if the processor is offline. */
static int open_processor(struct perf *p, struct processor *c)
{
	struct perf_event_attr attr = attributes(p);
	int r;

	c->fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)index_of(p, c), -1,
			     PERF_FLAG_FD_CLOEXEC);
	if (c->fd < 0)
		return -errno;
	/* EPERM: the memory that may be locked is used up. */
	while ((r = map_ring(p, c)) == -EPERM && p->ring_bytes > RING_BYTES_MIN)
		p->ring_bytes /= 2;
	if (r < 0) {
		close_processor(c);
		return r;
	}
	if (p->period_ns != 0)
		start(c, p->period_ns);
	return 0;
}

static bool is_before_5_11(void)
{
	struct utsname name;
	int major = 0, minor = 0;

	return uname(&name) < 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2 ||
	       major < 5 || (major == 5 && minor < 11);
}

int perf_open(uint32_t stack_bytes, struct perf **ret)
{
	const long n = sysconf(_SC_NPROCESSORS_CONF);
	struct perf *p;
	int r, error = -ENODEV;
	bool any = false;

	if (n < 1 || n > PROCESSORS_MAX)
		return -ERANGE;
	p = calloc(1, sizeof(*p) + (size_t)n * sizeof(p->processors[0]));
	if (p == NULL)
		return -ENOMEM;
	p->n = (size_t)n;
	p->stack_bytes = stack_bytes;
	p->ring_bytes = RING_BYTES_MAX;
	p->is_old = is_before_5_11();
	for (size_t i = 0; i < p->n; i++)
		p->processors[i].fd = -1;
	for (size_t i = 0; i < p->n; i++) {
		r = open_processor(p, &p->processors[i]);
		any |= r == 0;
		if (r < 0 && r != -ENODEV)
			error = r;
	}
	/* A part of the processors would tell a part of the time. */
	if (!any || error != -ENODEV) {
		perf_close(p);
		return error;
	}
	*ret = p;
	return 0;
}

void perf_close(struct perf *p)
{
	if (p == NULL)
		return;
	for (size_t i = 0; i < p->n; i++)
		close_processor(&p->processors[i]);
	free(p);
}

void perf_set_period(struct perf *p, uint64_t period_ns)
{
	if (period_ns == p->period_ns)
		return;
	p->period_ns = period_ns;
	for (size_t i = 0; i < p->n; i++)
		if (p->processors[i].fd >= 0)
			start(&p->processors[i], period_ns);
}

/* The event of a processor that has gone offline counts no further, also if it comes back. */
static bool counts(struct processor *c)
{
	const uint64_t before = c->count;

	return read(c->fd, &c->count, sizeof(c->count)) == sizeof(c->count) && c->count != before;
}

bool perf_check_processors(struct perf *p)
{
	bool changed = false;

	for (size_t i = 0; i < p->n; i++) {
		struct processor *c = &p->processors[i];

		if (c->fd >= 0 && p->period_ns != 0 && !counts(c)) {
			close_processor(c);
			changed = true;
		}
		if (c->fd < 0 && open_processor(p, c) == 0)
			changed = true;
	}
	return changed;
}

/* Reads the record at the tail. */
static void find_record(struct processor *c)
{
	const int r = perf_decode(&c->bytes, &c->record);

	c->has_record = r != 0;
	if (r < 0)
		c->record = (struct perf_record){
			.kind = PERF_KIND_LOST,
			.size = c->bytes.head - c->bytes.tail,
		};
}

void perf_begin(struct perf *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct processor *c = &p->processors[i];

		if (c->fd < 0)
			continue;
		c->bytes.head = __atomic_load_n(&c->page->data_head, __ATOMIC_ACQUIRE);
		find_record(c);
	}
}

bool perf_next(struct perf *p, uint64_t until_ns, const struct perf_record **ret)
{
	struct processor *oldest = NULL;

	for (size_t i = 0; i < p->n; i++) {
		struct processor *c = &p->processors[i];

		if (c->has_record && c->record.time_ns < until_ns &&
		    (oldest == NULL || c->record.time_ns < oldest->record.time_ns))
			oldest = c;
	}
	p->current = oldest;
	if (oldest == NULL)
		return false;
	*ret = &oldest->record;
	return true;
}

void perf_read_stack(const struct perf *p, void *to, size_t n)
{
	perf_copy(&p->current->bytes, p->current->record.stack_at, to, n);
}

uint64_t perf_read_known(const struct perf *p)
{
	return perf_regs_known(&p->current->record, p->is_old);
}

void perf_release(struct perf *p)
{
	struct processor *c = p->current;

	c->bytes.tail += c->record.size;
	__atomic_store_n(&c->page->data_tail, c->bytes.tail, __ATOMIC_RELEASE);
	find_record(c);
}

size_t perf_stack_bytes(const struct perf *p)
{
	return p->stack_bytes;
}
