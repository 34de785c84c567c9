/* The text of /proc/PID/maps. */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>

#include "lib/unwind/space/maps.h"

#define LINES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct maps m;
	uint64_t end = 0;

	if (maps_parse(&m, (const char *)data, size, LINES_MAX))
		return 0;
	assert(m.n <= LINES_MAX);
	for (size_t i = 0; i < m.n; i++) {
		const struct map *map = &m.v[i], *above = maps_above(&m, map);

		assert(map->start >= end && map->end > map->start);
		end = map->end;
		assert(strlen(map->path) <= size);
		assert(maps_find(&m, map->start) == map);
		assert(maps_find(&m, map->end - 1) == map);
		assert(maps_find(&m, map->end) != map);
		if (above)
			assert(above->start >= map->end && above->inode != 0 && above->offset > 0 &&
			       strlen(above->path) <= size);
	}
	maps_fini(&m);
	return 0;
}
