#include "lib/base/ring.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define RING_SEALS (F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/*
 * A lap may end early once the reader has read 1/REUSE_SHARE of it, and REUSE_TIMES the largest
 * backlog of the reader in this lap. So writer and reader use only a few pages. This matters
 * because the kernel allocates a page when it is first touched, which can be while a thread is
 * stopped. If the reader falls behind later, the writer uses the memory behind the early end.
 */
#define REUSE_SHARE 64
#define REUSE_TIMES 2

#define PAD_SIZE sizeof(struct ring_record)

/*
 * The reader prefetches this much after a record, because the bytes are in another processor's
 * cache. A usual sample fits into a page.
 */
#define FETCH_AHEAD_BYTES 4096
#define CACHE_LINE_BYTES  64

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static bool size_is_valid(uint64_t size)
{
	return size >= page_size() && size <= RING_SIZE_MAX && (size & (size - 1)) == 0;
}

/* The bytes of the memory: the records, and the page of the head. */
static size_t mapped_size(size_t size)
{
	return size + page_size();
}

int ring_writer_init(struct ring_writer *w, size_t size)
{
	void *base = MAP_FAILED;
	int fd = -1, r;

	if (!size_is_valid(size))
		return -EINVAL;
	fd = memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)mapped_size(size)) < 0)
		goto fail;
	base = mmap(NULL, mapped_size(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		goto fail;
	/* After this call no further writable mapping can be made. */
	if (fcntl(fd, F_ADD_SEALS, RING_SEALS) < 0)
		goto fail;
	*w = (struct ring_writer){.base = base, .size = size, .fd = fd};
	return 0;
fail:
	r = -errno;
	if (base != MAP_FAILED)
		(void)munmap(base, mapped_size(size));
	close_fd(&fd);
	return r;
}

void ring_writer_fini(struct ring_writer *w)
{
	if (w == NULL || w->base == NULL)
		return;
	(void)munmap(w->base, mapped_size(w->size));
	close_fd(&w->fd);
	*w = (struct ring_writer){.fd = -1};
}

void ring_writer_detach(struct ring_writer *w)
{
	void *own = mmap(NULL, mapped_size(w->size), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert(w->reserved_size == 0);
	if (own == MAP_FAILED)
		return;
	(void)munmap(w->base, mapped_size(w->size));
	close_fd(&w->fd);
	w->base = own;
}

static uint64_t place_of(const struct ring_writer *w, uint64_t at)
{
	return at & (w->size - 1);
}

static struct ring_record *record_at(const struct ring_writer *w, uint64_t at)
{
	return (struct ring_record *)(void *)(w->base + place_of(w, at));
}

static bool is_in_this_lap(const struct ring_writer *w, uint64_t at)
{
	return ((at ^ w->head) & ~(uint64_t)(w->size - 1)) == 0;
}

static bool has_freed_much(const struct ring_writer *w)
{
	const uint64_t left = place_of(w, w->tail);

	return is_in_this_lap(w, w->tail) && left >= w->size / REUSE_SHARE &&
	       left / REUSE_TIMES >= w->behind;
}

/*
 * Returns the offset from which on memory is free although the reader is still in the last lap:
 * behind the header of the pad record that ended that lap early. If there is none, the ring's size.
 */
static uint64_t beyond_end(const struct ring_writer *w)
{
	if (is_in_this_lap(w, w->tail) || w->pad == 0)
		return w->size;
	return w->size - w->pad + PAD_SIZE;
}

/* Returns whether size bytes at position start do not reach the reader. */
static bool is_free(const struct ring_writer *w, uint64_t start, size_t size)
{
	return start + size - w->tail <= w->size;
}

int ring_reserve(struct ring_writer *w, size_t size, void **ret)
{
	const uint64_t place = place_of(w, w->head), beyond = beyond_end(w);
	const uint64_t left = w->size - place;
	uint64_t start = w->head;

	assert(w->reserved_size == 0);
	if (size > w->size / 2)
		return -E2BIG;
	size = align_up(max_u64(size, sizeof(struct ring_record)), RING_ALIGN);
	/*
	 * Start a new lap if the record does not fit into this one, or if the reader is in this lap
	 * and has freed enough of its start. A later record that would reach unread ones skips them
	 * by a pad record.
	 */
	if ((size > left || has_freed_much(w)) && is_free(w, start + left, size + PAD_SIZE)) {
		start += left;
	} else if (size > left) {
		return -ENOBUFS;
	} else if (place < beyond && !is_free(w, start, size + (beyond < w->size ? PAD_SIZE : 0))) {
		if (size > w->size - beyond)
			return -ENOBUFS;
		start += beyond - place;
	}
	w->reserved = start;
	w->reserved_size = size;
	*ret = record_at(w, start);
	return 0;
}

void ring_commit(struct ring_writer *w, uint32_t type, size_t used)
{
	struct ring_record *record = record_at(w, w->reserved);
	size_t size = align_up(used, RING_ALIGN);

	assert(w->reserved_size != 0 && size <= w->reserved_size);
	assert(used >= sizeof(*record) && type != 0);
	memset((uint8_t *)record + used, 0, size - used);
	*record = (struct ring_record){.size = (uint32_t)size, .type = type};
	if (w->reserved != w->head)
		*record_at(w, w->head) =
			(struct ring_record){.size = (uint32_t)(w->reserved - w->head)};
	if (place_of(w, w->reserved) == 0) {
		w->pad = w->reserved - w->head;
		w->behind = 0;
	}
	w->head = w->reserved + size;
	w->reserved_size = 0;
	/* The lap ends exactly at the ring's end, without a pad record. */
	if (place_of(w, w->head) == 0)
		w->pad = 0;
	/* After the record: the writer may be killed at any instruction. */
	__atomic_store_n((uint64_t *)(void *)(w->base + w->size), w->head, __ATOMIC_RELEASE);
}

size_t ring_space(const struct ring_writer *w)
{
	const uint64_t beyond = beyond_end(w);

	if (place_of(w, w->head) >= beyond)
		return w->size - place_of(w, w->head);
	return w->size - (size_t)min_u64(w->head - w->tail, w->size) + w->size - beyond;
}

uint64_t ring_bytes_since(const struct ring_writer *w, uint64_t at)
{
	return w->head - at - (is_in_this_lap(w, at) ? 0 : w->pad);
}

void ring_abort(struct ring_writer *w)
{
	assert(w->reserved_size != 0);
	w->reserved_size = 0;
}

int ring_credit(struct ring_writer *w, uint64_t tail)
{
	if (tail < w->tail || tail > w->head)
		return -EPROTO;
	w->behind = max_u64(w->behind, ring_bytes_since(w, w->tail));
	w->tail = tail;
	return 0;
}

int ring_reader_init(struct ring_reader *r, int fd)
{
	struct stat st;
	size_t size;
	void *base;
	int seals;

	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & RING_SEALS) != RING_SEALS)
		return -EPROTO;
	if (fstat(fd, &st) < 0)
		return -errno;
	/* Without a page of the head the difference is 0, or too large to be valid. */
	size = (size_t)st.st_size - page_size();
	if (!size_is_valid(size))
		return -EPROTO;
	base = mmap(NULL, mapped_size(size), PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	*r = (struct ring_reader){.base = base, .size = size};
	return 0;
}

void ring_reader_fini(struct ring_reader *r)
{
	if (r == NULL || r->base == NULL)
		return;
	(void)munmap((void *)(uintptr_t)r->base, mapped_size(r->size));
	*r = (struct ring_reader){0};
}

int ring_advance(struct ring_reader *r, uint64_t head)
{
	if (head < r->head || head - r->tail > 2 * r->size || head % RING_ALIGN)
		return -EPROTO;
	r->head = head;
	return 0;
}

int ring_advance_to_end(struct ring_reader *r)
{
	const uint64_t *head = (const uint64_t *)(const void *)(r->base + r->size);

	return ring_advance(r, __atomic_load_n(head, __ATOMIC_ACQUIRE));
}

static void fetch_ahead(struct ring_reader *r, uint64_t from)
{
	uint64_t until = min_u64(from + FETCH_AHEAD_BYTES, r->head);

	for (r->fetched = max_u64(r->fetched, from); r->fetched < until;
	     r->fetched += CACHE_LINE_BYTES)
		__builtin_prefetch(r->base + (r->fetched & (r->size - 1)));
}

int ring_next(struct ring_reader *r, const struct ring_record **ret, size_t *ret_size)
{
	while (r->tail != r->head) {
		size_t at = (size_t)(r->tail & (r->size - 1));
		const struct ring_record *record =
			(const struct ring_record *)(const void *)(r->base + at);
		/*
		 * Each field is read only once, because the writer could change it after the
		 * checks.
		 */
		uint32_t size = *(const volatile uint32_t *)&record->size;
		uint32_t type = *(const volatile uint32_t *)&record->type;

		if (size < sizeof(*record) || size % RING_ALIGN || size > r->size - at ||
		    size > r->head - r->tail)
			return -EPROTO;
		if (type == 0) {
			r->tail += size;
			continue;
		}
		fetch_ahead(r, r->tail + size);
		*ret = record;
		*ret_size = size;
		return 1;
	}
	return 0;
}

void ring_release(struct ring_reader *r, size_t size)
{
	assert(size <= r->head - r->tail);
	r->tail += size;
	r->read += size;
}
