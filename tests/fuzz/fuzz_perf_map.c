/*
 * A perf map. A byte says how much of the input is in the file at first; the rest is appended
 * while it is read.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/unwind/image/perf_map.h"

static void check(const struct perf_map *m, size_t size)
{
	uint64_t offset;
	const char *name;

	assert(m->read_to <= size);
	for (size_t i = 0; i < m->n; i++) {
		const struct perf_map_entry *e = &m->v[i];

		assert(e->size > 0 && e->start <= UINT64_MAX - e->size);
		assert(i == 0 || e->start >= m->v[i - 1].start + m->v[i - 1].size);
		assert(perf_map_find(m, e->start + e->size - 1, &name, &offset));
		assert(offset == e->size - 1 && strlen(name) > 0);
		assert(strlen(name) < PERF_MAP_LINE_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t first, parts[2];
	struct perf_map m;
	int fd;

	if (size < 1)
		return 0;
	first = (size - 1) * data[0] / UINT8_MAX;
	parts[0] = first;
	parts[1] = size - 1 - first;
	fd = fuzz_file(data + 1, parts[0]);
	perf_map_init(&m);
	perf_map_open(&m, dup(fd));
	assert(perf_map_update(&m) == 0);
	check(&m, parts[0]);
	if (parts[1] > 0)
		assert(write(fd, data + 1 + parts[0], parts[1]) == (ssize_t)parts[1]);
	assert(perf_map_update(&m) == 0);
	check(&m, size - 1);
	/* A shorter file is read anew. */
	assert(ftruncate(fd, (off_t)(parts[0] / 2)) == 0);
	assert(perf_map_update(&m) == 0);
	check(&m, parts[0] / 2);
	perf_map_fini(&m);
	close_fd(&fd);
	return 0;
}
