#include "lib/capture/watched_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/capture/proc/memory.h"
#include "lib/capture/record.h"
#include "lib/capture/slow_memory.h"

/* How many ticks the reads of parts that are not `often` are apart. */
#define SELDOM_TICKS 8

struct watched_parts {
	uint32_t list;
	size_t n;
	uint64_t seldom_tick; /* the next read of all parts */
	struct watch_part parts[WATCH_PARTS];
	uint64_t hashes[WATCH_PARTS]; /* the last ones that the reader knows */
};

/* The parts of one read. */
struct due_parts {
	size_t n;
	size_t numbers[WATCH_PARTS];
	struct iovec local[WATCH_PARTS], remote[WATCH_PARTS];
	uint8_t bytes[WATCH_PARTS][WATCH_BYTES];
	uint64_t hashes[WATCH_PARTS]; /* by the part's number */
};

void watched_parts_set(struct traced_process *t, uint32_t list, const struct watch_part *parts,
		       size_t n)
{
	struct watched_parts *w = t->watched_parts;

	if (w == NULL)
		w = t->watched_parts = calloc(1, sizeof(*w));
	if (w == NULL)
		return;
	for (size_t i = 0; i < n; i++)
		if (w->list != list || i >= w->n || w->parts[i].addr != parts[i].addr ||
		    w->parts[i].size != parts[i].size)
			w->hashes[i] = 0;
	memcpy(w->parts, parts, n * sizeof(parts[0]));
	w->n = n;
	w->list = list;
	w->seldom_tick = 0;
}

void watched_parts_clear(struct traced_process *t)
{
	free(t->watched_parts);
	t->watched_parts = NULL;
}

void watched_parts_forget(struct traced_process *t)
{
	if (t->watched_parts != NULL)
		memset(t->watched_parts->hashes, 0, sizeof(t->watched_parts->hashes));
}

/* Collects the parts that are due and in memory. The hash of the others that are due becomes 0. */
static void collect(const struct traced_process *t, bool all, struct due_parts *due)
{
	const uint64_t page_size = (uint64_t)getpagesize();
	const struct watched_parts *w = t->watched_parts;
	uint64_t last_page = UINT64_MAX;
	bool is_there = false;

	due->n = 0;
	for (size_t i = 0; i < w->n; i++) {
		const struct watch_part *part = &w->parts[i];
		const uint64_t page = part->addr / page_size;

		due->hashes[i] = w->hashes[i];
		if (!all && part->often == 0)
			continue;
		due->hashes[i] = 0;
		/* The parts of a small library without a build-id are in two pages. */
		if (page != last_page || (part->addr + part->size - 1) / page_size != page)
			is_there = memory_is_there(t->pagemap_fd, part->addr, part->size);
		last_page = page;
		if (!is_there)
			continue;
		due->numbers[due->n] = i;
		due->local[due->n] = (struct iovec){due->bytes[due->n], part->size};
		due->remote[due->n] = (struct iovec){(void *)(uintptr_t)part->addr, part->size};
		due->n++;
	}
}

/*
 * Reads the parts. A read ends at a part that is not readable any more; the next one begins after
 * it. Returns the number of bytes.
 */
static size_t read_parts(int32_t tid, struct due_parts *due)
{
	size_t sum = 0;

	for (size_t i = 0; i < due->n; i++) {
		ssize_t n = process_vm_readv(tid, due->local + i, due->n - i, due->remote + i,
					     due->n - i, 0);

		for (; i < due->n && n >= (ssize_t)due->local[i].iov_len; i++) {
			const size_t size = due->local[i].iov_len;

			due->hashes[due->numbers[i]] = watch_part_hash(due->bytes[i], size);
			sum += size;
			n -= (ssize_t)size;
		}
	}
	return sum;
}

void watched_parts_tick(struct traced_process *t, uint64_t tick, uint64_t time_ns)
{
	const struct thread *th = t->threads.awake != NULL ? t->threads.awake : t->threads.asleep;
	static struct due_parts due;
	struct watched_parts *w = t->watched_parts;
	uint64_t since;
	bool all;

	if (w == NULL || w->n == 0 || th == NULL || t->sink->reader_is_gone ||
	    slow_memory_is_avoided(t))
		return;
	all = tick >= w->seldom_tick;
	if (all)
		w->seldom_tick = tick + SELDOM_TICKS;
	since = t->capture->options.now_ns();
	collect(t, all, &due);
	/* By the thread's number, because a leader that has exited has no memory. */
	slow_memory_was_read(t, since, read_parts((int32_t)th->tid, &due));
	for (size_t i = 0; i < w->n; i++) {
		if (due.hashes[i] == w->hashes[i])
			continue;
		if (!record_watched(t, w->list, (uint32_t)i, due.hashes[i], tick, time_ns))
			return;
		w->hashes[i] = due.hashes[i];
	}
}
