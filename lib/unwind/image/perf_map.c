#include "lib/unwind/image/perf_map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/array.h"
#include "lib/base/digits.h"
#include "lib/unwind/elf/elf_file.h"

#define BLOCK 65536

/* Bytes of one function's code. Compilers make some megabytes at most. */
#define ENTRY_SIZE_MAX (64u << 20)

void perf_map_init(struct perf_map *m)
{
	*m = (struct perf_map){.fd = -1};
}

static void forget(struct perf_map *m)
{
	m->n = 0;
	m->names_size = 0;
	m->read_to = 0;
	m->order = 0;
}

void perf_map_fini(struct perf_map *m)
{
	close_fd(&m->fd);
	perf_map_drop(m);
	perf_map_init(m);
}

size_t perf_map_bytes(const struct perf_map *m)
{
	return m->cap * sizeof(*m->v) + m->names_cap;
}

void perf_map_drop(struct perf_map *m)
{
	forget(m);
	free(m->v);
	free(m->names);
	m->v = NULL;
	m->names = NULL;
	m->cap = 0;
	m->names_cap = 0;
}

void perf_map_open(struct perf_map *m, int fd)
{
	struct stat st;

	if (fstat(fd, &st)) {
		close_fd(&fd);
		return;
	}
	if (m->fd < 0 || st.st_dev != m->device || st.st_ino != m->inode)
		forget(m);
	m->device = st.st_dev;
	m->inode = st.st_ino;
	close_fd(&m->fd);
	m->fd = fd;
}

void perf_map_reset_reads(struct perf_map *m)
{
	m->reads = 0;
}

/* Reads hexadecimal digits with or without "0x", and the blank behind them. */
static bool read_hex(const char **at, const char *end, uint64_t *ret)
{
	const char *p = *at;
	uint64_t value = 0;
	size_t n = 0;

	if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	for (; p < end; p++, n++) {
		const int digit = digits_value(*p >= 'A' && *p <= 'F' ? (char)(*p | 0x20) : *p);

		if (digit < 0)
			break;
		value = value << 4 | (unsigned int)digit;
	}
	if (n == 0 || n > 16 || p == end || *p != ' ')
		return false;
	*at = p + 1;
	*ret = value;
	return true;
}

static int add_name(struct perf_map *m, const char *name, size_t n, uint32_t *ret)
{
	if (m->names_cap - m->names_size <= n) {
		size_t cap = 2 * m->names_cap + n + BLOCK;
		char *names = realloc(m->names, cap);

		if (!names)
			return -ENOMEM;
		m->names = names;
		m->names_cap = cap;
	}
	*ret = (uint32_t)m->names_size;
	memcpy(m->names + m->names_size, name, n);
	m->names[m->names_size + n] = '\0';
	m->names_size += n + 1;
	return 0;
}

static int add_line(struct perf_map *m, const char *line, size_t n)
{
	const char *end = line + n;
	uint64_t start, size;
	uint32_t name;
	int r;

	if (!read_hex(&line, end, &start) || !read_hex(&line, end, &size) || line == end ||
	    size == 0 || size > ENTRY_SIZE_MAX || start > UINT64_MAX - size ||
	    memchr(line, '\0', (size_t)(end - line)))
		return 0;
	if (array_grow(m->v, m->n, m->cap) < 0)
		return -ENOMEM;
	r = add_name(m, line, (size_t)(end - line), &name);
	if (r == 0)
		m->v[m->n++] = (struct perf_map_entry){start, (uint32_t)size, m->order++, name};
	return r;
}

/* Adds the complete lines in n bytes. *ret_used: the size of these lines. */
static int add_lines(struct perf_map *m, const char *bytes, size_t n, size_t *ret_used)
{
	size_t pos = 0;
	int r = 0;

	while (r == 0 && m->n < PERF_MAP_ENTRIES_MAX) {
		const char *line = bytes + pos;
		const char *end = memchr(line, '\n', n - pos);

		if (!end)
			break;
		if (end - line <= PERF_MAP_LINE_MAX)
			r = add_line(m, line, (size_t)(end - line));
		pos += (size_t)(end - line) + 1;
	}
	*ret_used = pos;
	return r;
}

static int compare(const void *a, const void *b)
{
	const struct perf_map_entry *x = a;
	const struct perf_map_entry *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Removes entries that a later one overlaps. The entries are sorted. */
static void drop_overlapped(struct perf_map *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->n; i++) {
		const struct perf_map_entry x = m->v[i];

		while (kept > 0 && m->v[kept - 1].start + m->v[kept - 1].size > x.start &&
		       m->v[kept - 1].order < x.order)
			kept--;
		if (kept == 0 || m->v[kept - 1].start + m->v[kept - 1].size <= x.start)
			m->v[kept++] = x;
	}
	m->n = kept;
}

/* Sorts the entries from first on into those before. */
static int merge(struct perf_map *m, size_t first)
{
	struct perf_map_entry *old;
	size_t n_old = first, n_new = m->n - first;

	if (n_new == 0)
		return 0;
	qsort(m->v + first, n_new, sizeof(*m->v), compare);
	old = reallocarray(NULL, first + 1, sizeof(*old));
	if (!old)
		return -ENOMEM;
	/* Merges from the front: new entries are behind the position that is written. */
	if (first > 0)
		memcpy(old, m->v, first * sizeof(*old));
	for (size_t i = 0, o = 0, k = first; i < m->n; i++) {
		bool take_old = o < n_old && (k == m->n || compare(&old[o], &m->v[k]) < 0);

		m->v[i] = take_old ? old[o++] : m->v[k++];
	}
	free(old);
	drop_overlapped(m);
	return 0;
}

static size_t tail_size(const struct perf_map *m)
{
	return (size_t)min_u64(m->read_to, sizeof(m->tail));
}

static bool has_tail(const struct perf_map *m)
{
	const size_t n = tail_size(m);
	char bytes[PERF_MAP_TAIL];

	return elf_file_pread(m->fd, bytes, n, m->read_to - n) == 0 &&
	       memcmp(bytes, m->tail, n) == 0;
}

int perf_map_update(struct perf_map *m)
{
	static char block[BLOCK];
	size_t first;
	struct stat st;
	uint64_t size;
	int r = 0;

	if (m->fd < 0 || fstat(m->fd, &st) || st.st_size < 0)
		return 0;
	size = min_u64((uint64_t)st.st_size, PERF_MAP_BYTES_MAX);
	if (size == m->read_to || m->reads >= PERF_MAP_READS_MAX)
		return 0;
	m->reads++;
	if (size < m->read_to || !has_tail(m))
		forget(m);
	first = m->n;
	while (r == 0 && m->read_to < size && m->n < PERF_MAP_ENTRIES_MAX) {
		size_t n = (size_t)min_u64(size - m->read_to, sizeof(block));
		size_t used;

		if (elf_file_pread(m->fd, block, n, m->read_to))
			break;
		r = add_lines(m, block, n, &used);
		/*
		 * A line longer than a block is skipped; a shorter one without a newline is left
		 * for later.
		 */
		if (used == 0 && n < sizeof(block))
			break;
		m->read_to += used > 0 ? used : n;
	}
	/* If this fails, the next update reads the whole file. */
	(void)!elf_file_pread(m->fd, m->tail, tail_size(m), m->read_to - tail_size(m));
	if (merge(m, first) < 0) {
		m->n = first;
		return -ENOMEM;
	}
	return r;
}

bool perf_map_find(const struct perf_map *m, uint64_t addr, const char **ret_name,
		   uint64_t *ret_offset)
{
	const size_t n = array_upper_bound(m->v, m->n, start, addr);
	const struct perf_map_entry *e;

	if (n == 0)
		return false;
	e = &m->v[n - 1];
	if (addr - e->start >= e->size)
		return false;
	*ret_name = m->names + e->name;
	*ret_offset = addr - e->start;
	return true;
}
