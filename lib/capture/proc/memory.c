#include "lib/capture/proc/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "lib/capture/proc/proc.h"

/*
 * Bits of a pagemap entry. If an entry is watched for writes, it may be no swap entry although that
 * bit is set.
 */
#define PAGE_PRESENT	   (UINT64_C(1) << 63)
#define PAGE_SWAPPED	   (UINT64_C(1) << 62)
#define PAGE_WRITE_WATCHED (UINT64_C(1) << 57)

struct range {
	uint64_t page_size;
	uint64_t first; /* page number */
	size_t n;
	uint64_t entries[MEMORY_PAGES_MAX];
};

int memory_open(int proc_fd, uint32_t tid, int *ret_fd)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "task/%u/pagemap", tid);
	*ret_fd = -1;
	return proc_error(proc_open(proc_fd, path, O_RDONLY, ret_fd));
}

static bool is_there(uint64_t entry)
{
	return (entry & PAGE_PRESENT) != 0 ||
	       ((entry & PAGE_SWAPPED) != 0 && (entry & PAGE_WRITE_WATCHED) == 0);
}

/*
 * Reads the pagemap entries of a range. Addresses above user space have no entries; n is then
 * reduced.
 */
static int look_up(int pagemap_fd, const struct memory_seen *seen, struct range *range)
{
	ssize_t n;

	if (pagemap_fd < 0 || (seen != NULL && range->first * range->page_size >= seen->lo &&
			       (range->first + range->n) * range->page_size <= seen->hi)) {
		for (size_t i = 0; i < range->n; i++)
			range->entries[i] = PAGE_PRESENT;
		return 0;
	}
	n = pread(pagemap_fd, range->entries, range->n * sizeof(uint64_t),
		  (off_t)(range->first * sizeof(uint64_t)));
	if (n < 0)
		return -EFAULT;
	range->n = (size_t)n / sizeof(uint64_t);
	return n == 0 ? -ESRCH : 0;
}

/* Returns the number of pages up to the last one that must be read; 0: none. */
static size_t pages_to_read(const struct range *range, size_t hole_max)
{
	size_t end = 0;

	for (size_t i = 0; i < range->n && i - end <= hole_max; i++)
		if (is_there(range->entries[i]))
			end = i + 1;
	return end;
}

/* The arguments of process_vm_readv(2), a pair for each run of pages. */
struct runs {
	struct iovec local[MEMORY_PAGES_MAX], remote[MEMORY_PAGES_MAX];
	size_t n;
};

/*
 * Collects the runs of pages in memory among the first `pages`, and fills the gaps between them
 * with zeros. Returns the number of bytes of `to` up to the end of the last run.
 */
static size_t make_runs(const struct range *range, size_t pages, uint64_t addr, uint64_t end,
			uint8_t *to, struct runs *ret)
{
	size_t filled = 0;

	ret->n = 0;
	for (size_t i = 0, next; i < pages; i = next) {
		const bool there = is_there(range->entries[i]);
		uint64_t from, up_to;

		for (next = i + 1; next < pages; next++)
			if (is_there(range->entries[next]) != there)
				break;
		from = max_u64((range->first + i) * range->page_size, addr);
		up_to = min_u64((range->first + next) * range->page_size, end);
		filled = (size_t)(up_to - addr);
		if (!there) {
			memset(to + (from - addr), 0, (size_t)(up_to - from));
			continue;
		}
		ret->local[ret->n] = (struct iovec){
			.iov_base = to + (from - addr),
			.iov_len = (size_t)(up_to - from),
		};
		ret->remote[ret->n] = (struct iovec){
			.iov_base = (void *)(uintptr_t)from,
			.iov_len = (size_t)(up_to - from),
		};
		ret->n++;
	}
	return filled;
}

/* Sets the range to the pages of [addr, addr + size). Returns false if there are none. */
static bool set_pages(struct range *range, uint64_t addr, size_t size, uint64_t *ret_end)
{
	range->page_size = (uint64_t)getpagesize();
	/* The end of the last page must not overflow, either. */
	if (size == 0 || __builtin_add_overflow(addr, size, ret_end) ||
	    *ret_end > UINT64_MAX - range->page_size)
		return false;
	range->first = addr / range->page_size;
	range->n = (size_t)((*ret_end - 1) / range->page_size - range->first) + 1;
	range->n = min_size(range->n, MEMORY_PAGES_MAX);
	return true;
}

bool memory_is_there(int pagemap_fd, uint64_t addr, size_t size)
{
	struct range range;
	uint64_t end;
	size_t n;

	if (!set_pages(&range, addr, size, &end))
		return false;
	n = range.n;
	if (look_up(pagemap_fd, NULL, &range) < 0 || range.n < n)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((range.entries[i] & PAGE_PRESENT) == 0)
			return false;
	return true;
}

ssize_t memory_read(int pagemap_fd, struct memory_seen *seen, int32_t tid, uint64_t addr, void *to,
		    size_t size, size_t hole_max)
{
	struct range range; /* not cleared, because that would write 4 KiB for each sample */
	struct runs runs;
	size_t filled;
	uint64_t end;
	ssize_t n;
	int r;

	if (!set_pages(&range, addr, size, &end))
		return -EFAULT;
	r = look_up(pagemap_fd, seen, &range);
	if (r < 0)
		return r;
	filled = make_runs(&range, pages_to_read(&range, hole_max), addr, end, to, &runs);
	if (runs.n == 0)
		return -EFAULT;
	if (seen != NULL && runs.n == 1 && runs.local[0].iov_len == size)
		*seen = (struct memory_seen){
			.lo = range.first * range.page_size,
			.hi = (range.first + range.n) * range.page_size,
		};
	n = process_vm_readv(tid, runs.local, runs.n, runs.remote, runs.n, 0);
	if (n < 0)
		return errno == ESRCH ? -ESRCH : -EFAULT;
	/* If the read ended within a run, all bytes before that point are valid, zeros included. */
	for (size_t i = 0; i < runs.n; i++) {
		const struct iovec *run = &runs.local[i];

		if ((size_t)n < run->iov_len)
			return (uint8_t *)run->iov_base - (uint8_t *)to + n;
		n -= (ssize_t)run->iov_len;
	}
	return (ssize_t)filled;
}
