#include "lib/unwind/space/versions.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/unwind/space/space.h"

struct replaced_mapping {
	struct map map;
	struct space_mapping m;
	/*
	 * Owned: the paths of the mapping that was first here. After an exchange the present
	 * mapping may use them, and the one here those of s->maps; versions_replace() copies all.
	 */
	char *paths;
};

void versions_fini(struct unwind_space *s)
{
	for (size_t i = 0; i < s->versions.n; i++) {
		cache_put(s->versions.list[i].m.image);
		free(s->versions.list[i].paths);
	}
	free(s->versions.list);
	s->versions.list = NULL;
	s->versions.n = 0;
}

static bool overlap(const struct map *a, const struct map *b)
{
	return a->start < b->end && b->start < a->end;
}

/* Returns the range of the image, of which map is a part. */
static struct map range_of(const struct map *map, const struct space_mapping *m)
{
	struct map range = *map;
	uint64_t end;

	if (m->image && !__builtin_add_overflow(m->bias + m->image->base, m->image->size, &end)) {
		range.start = min_u64(range.start, m->bias + m->image->base);
		range.end = max_u64(range.end, end);
	}
	return range;
}

static uint8_t free_version(const struct unwind_space *s, const struct map *map,
			    const struct space_mapping *m)
{
	const struct map range = range_of(map, m);
	bool used[VERSIONS_MAX + 1] = {false};
	uint8_t version = 0;

	for (size_t i = 0; i < s->versions.n; i++) {
		const struct replaced_mapping *r = &s->versions.list[i];
		const struct map other = range_of(&r->map, &r->m);

		/* The same code, perhaps a copy of it in other memory. */
		if (m->image && r->m.image == m->image && r->m.bias == m->bias)
			return r->m.version;
		if (overlap(&range, &other) && r->m.version <= VERSIONS_MAX)
			used[r->m.version] = true;
	}
	while (version < VERSIONS_MAX && used[version])
		version++;
	return version;
}

/* Returns the index of this part in the list, added if it is new. The list has room. */
static size_t add_part(struct watch *w, uint64_t addr, uint32_t size, bool often)
{
	size_t i = 0;

	while (i < w->n && (w->parts[i].addr != addr || w->parts[i].size != size))
		i++;
	if (i == w->n) {
		w->hashes[w->n] = 0;
		w->parts[w->n++] = (struct watch_part){addr, size, 0};
		w->changed = true;
	}
	if (often && !w->parts[i].often) {
		w->parts[i].often = 1;
		w->changed = true;
	}
	return i;
}

static void add_place(struct watch *w, uint64_t addr)
{
	for (size_t i = 0; i < w->n_places; i++)
		if (w->places[i] == addr)
			return;
	if (w->n_places < WATCH_PARTS)
		w->places[w->n_places++] = addr;
}

static void watch_mapping(struct unwind_space *s, const struct map *map, struct space_mapping *m)
{
	struct watch *w = &s->versions.watch;
	const struct fingerprint *f;

	m->n_parts = 0;
	if (!m->image || m->image->is_vdso || m->trusts_maps)
		return;
	f = &m->image->fingerprint;
	if (f->n == 0 || w->n + f->n > WATCH_PARTS)
		return;
	if (w->list == 0)
		w->list = ++s->cache->watch_lists;
	for (; m->n_parts < f->n; m->n_parts++)
		m->parts[m->n_parts] =
			(uint8_t)add_part(w, m->bias + f->parts[m->n_parts].vaddr,
					  f->parts[m->n_parts].size, m->version != 0);
	add_place(w, map->start);
	w->has_news = true;
}

enum match { MATCH_NO, MATCH_UNKNOWN, MATCH_YES };

/* Compares the memory, as far as it is known, with the image of m. */
static enum match match(const struct watch *w, const struct space_mapping *m)
{
	enum match found = MATCH_UNKNOWN;

	for (size_t k = 0; k < m->n_parts; k++) {
		const uint64_t hash = w->hashes[m->parts[k]];

		if (hash != 0 && hash != m->image->fingerprint.parts[k].hash)
			return MATCH_NO;
		if (hash != 0)
			found = MATCH_YES;
	}
	return found;
}

void versions_add(struct unwind_space *s, const struct map *map, struct space_mapping *m)
{
	m->version = free_version(s, map, m);
	watch_mapping(s, map, m);
	/* Capture may watch the same bytes for another image. */
	m->is_doubted = match(&s->versions.watch, m) == MATCH_NO;
	if (m->refused) {
		add_place(&s->versions.watch, map->start);
		s->versions.watch.has_news = true;
	}
	s->versions.in_use |= m->version != 0 || m->is_doubted;
}

const struct map *versions_map(const struct unwind_space *s, size_t i)
{
	return &s->versions.list[i].map;
}

struct space_mapping *versions_mapping(struct unwind_space *s, size_t i)
{
	return &s->versions.list[i].m;
}

/* Returns true if frames may lie in the mapping, and maps does not have it. */
static bool is_gone(const struct map *map, const struct space_mapping *m, const struct maps *maps)
{
	return m->tried && (m->image || m->generated) && !space_still_there(map, maps);
}

/* Returns how many mappings the list has if maps are the present ones. */
static size_t count_replaced(const struct unwind_space *s, const struct maps *maps)
{
	size_t n = s->versions.n;

	for (size_t i = 0; i < s->maps.n; i++)
		n += is_gone(&s->maps.v[i], &s->mappings[i], maps);
	return n;
}

bool versions_are_full(const struct unwind_space *s, const struct maps *maps)
{
	/* Empty maps are those of a process that has ended. */
	return count_replaced(s, maps) > (maps->n > 0 ? VERSIONS_MAX : 0);
}

/* Moves a mapping to the list, with its own copies of its paths. Leaves m without an image. */
static void add_replaced(struct watch *w, struct replaced_mapping *list, size_t *n,
			 const struct map *map, struct space_mapping *m)
{
	const char *file = m->file.path ? m->file.path : "";
	const size_t size = strlen(map->path) + 1, file_size = strlen(file) + 1;
	char *paths = malloc(size + file_size);

	/* What has gone once may come and go. */
	for (size_t k = 0; k < m->n_parts; k++) {
		w->changed |= !w->parts[m->parts[k]].often;
		w->parts[m->parts[k]].often = 1;
	}
	if (paths) {
		memcpy(paths, map->path, size);
		memcpy(paths + size, file, file_size);
		list[*n] = (struct replaced_mapping){*map, *m, paths};
		list[*n].map.path = paths;
		list[*n].map.above = list[*n].m.file.above = 0;
		list[*n].m.file.path = paths + size;
		++*n;
	} else {
		cache_put(m->image);
	}
	memset(m, 0, sizeof(*m));
}

void versions_replace(struct unwind_space *s, const struct maps *maps, bool full)
{
	struct watch *w = &s->versions.watch;
	const size_t room = full ? 0 : count_replaced(s, maps);
	struct replaced_mapping *list = room > 0 ? calloc(room, sizeof(*list)) : NULL;
	size_t n = 0;

	for (size_t i = 0; list && i < s->versions.n; i++) {
		struct replaced_mapping *r = &s->versions.list[i];

		/* Moved to maps: it is back. */
		if (!r->m.tried)
			continue;
		/* Perhaps the program has mapped the file there to read it. */
		if (match(w, &r->m) == MATCH_YES && r->m.doubts < SPACE_DOUBTS_MAX)
			r->m.doubts++;
		add_replaced(w, list, &n, &r->map, &r->m);
	}
	for (size_t i = 0; list && i < s->maps.n; i++)
		if (is_gone(&s->maps.v[i], &s->mappings[i], maps))
			add_replaced(w, list, &n, &s->maps.v[i], &s->mappings[i]);
	versions_fini(s);
	s->versions.list = list;
	s->versions.n = n;
	w->has_news = true;
}

void versions_watch_anew(struct unwind_space *s)
{
	s->versions.watch = (struct watch){0};
	for (size_t i = 0; i < s->maps.n; i++)
		watch_mapping(s, &s->maps.v[i], &s->mappings[i]);
}

/* Lets r and mapping i change places if memory looks more like r. Returns false if it does not. */
static bool exchange(struct unwind_space *s, struct replaced_mapping *r, size_t i)
{
	const struct replaced_mapping old = {s->maps.v[i], s->mappings[i], r->paths};

	if ((i > 0 && s->maps.v[i - 1].end > r->map.start) ||
	    (i + 1 < s->maps.n && s->maps.v[i + 1].start < r->map.end) ||
	    match(&s->versions.watch, &r->m) <= match(&s->versions.watch, &s->mappings[i]))
		return false;
	s->maps.v[i] = r->map;
	s->mappings[i] = r->m;
	/* The file could not be opened because the other one was mapped. */
	s->mappings[i].lost = false;
	*r = old;
	return true;
}

static bool exchange_all(struct unwind_space *s)
{
	bool changed = false;

	/* The newest first: of two that memory says nothing of, it is the more likely one. */
	for (size_t k = s->versions.n; k-- > 0;) {
		struct replaced_mapping *r = &s->versions.list[k];
		size_t i = array_upper_bound(s->maps.v, s->maps.n, end, r->map.start);

		for (; i < s->maps.n && overlap(&s->maps.v[i], &r->map); i++)
			if (exchange(s, r, i)) {
				changed = true;
				break;
			}
	}
	return changed;
}

/* A file may be refused because another one has been mapped since the maps were read. */
static bool is_uncertain(const struct space_mapping *m)
{
	return m->is_doubted || (m->refused && m->doubts < SPACE_DOUBTS_MAX);
}

/* Returns true if memory looks like a replaced mapping that covers addr. */
static bool has_come_back(const struct unwind_space *s, uint64_t addr)
{
	for (size_t i = 0; i < s->versions.n; i++) {
		const struct replaced_mapping *r = &s->versions.list[i];

		if (addr >= r->map.start && addr < r->map.end && r->m.doubts < SPACE_DOUBTS_MAX &&
		    match(&s->versions.watch, &r->m) == MATCH_YES)
			return true;
	}
	return false;
}

/* Compares m with memory. Returns true if a doubt has begun or is over. */
static bool doubt(struct unwind_space *s, struct space_mapping *m)
{
	const enum match found = match(&s->versions.watch, m);
	const bool before = m->is_doubted;

	m->is_doubted = found == MATCH_NO;
	s->versions.in_use |= m->is_doubted;
	if (found == MATCH_YES)
		m->doubts = 0;
	return m->is_doubted != before;
}

void versions_settle(struct unwind_space *s)
{
	struct watch *w = &s->versions.watch;
	bool changed;

	if (!w->has_news)
		return;
	w->has_news = false;
	w->has_doubt = false;
	changed = exchange_all(s);
	for (size_t i = 0; i < w->n_places; i++) {
		const struct map *map = maps_find(&s->maps, w->places[i]);
		struct space_mapping *m = map ? &s->mappings[map - s->maps.v] : NULL;

		changed |= m && doubt(s, m);
		w->has_doubt |= m ? is_uncertain(m) : has_come_back(s, w->places[i]);
	}
	if (changed)
		space_forget_lookups(s);
}

struct space_mapping *versions_find(struct unwind_space *s, uint64_t addr, uint64_t *ret_addr)
{
	uint64_t version;
	struct space_mapping *m;

	*ret_addr = unwind_plain_addr(addr);
	version = (addr - *ret_addr) >> UNWIND_VERSION_BIT;
	m = space_any_mapping(s, *ret_addr);
	if (m && m->version == version)
		return m;
	for (size_t i = s->versions.n; i-- > 0;) {
		struct replaced_mapping *r = &s->versions.list[i];

		if (r->m.version == version && *ret_addr >= r->map.start && *ret_addr < r->map.end)
			return &r->m;
	}
	return NULL;
}

static uint64_t mark(uint64_t addr, uint64_t version)
{
	return unwind_plain_addr(addr) == addr ? addr | version << UNWIND_VERSION_BIT : addr;
}

uint64_t versions_mark(const struct space_mapping *m, uint64_t addr)
{
	return m->version == 0 ? addr : mark(addr, m->version);
}

void versions_mark_frames(const struct unwind_space *s, struct unwind_stack *stack)
{
	for (size_t i = 0; s->versions.in_use && i < stack->n; i++) {
		struct unwind_frame *f = &stack->frames[i];
		const struct map *map = maps_find(&s->maps, f->is_leaf ? f->addr : f->addr - 1);
		const struct space_mapping *m = map ? &s->mappings[map - s->maps.v] : NULL;

		if (m && (m->is_doubted || m->version != 0))
			f->addr = mark(f->addr, m->is_doubted ? VERSION_DOUBT : m->version);
	}
}

bool unwind_space_needs_watch(const struct unwind_space *s, struct unwind_watch *ret)
{
	const struct watch *w = &s->versions.watch;

	if (!w->changed)
		return false;
	*ret = (struct unwind_watch){.list = w->list, .n = w->n};
	memcpy(ret->parts, w->parts, w->n * sizeof(w->parts[0]));
	return true;
}

void unwind_space_watch_sent(struct unwind_space *s)
{
	s->versions.watch.changed = false;
}

void unwind_space_watched(struct unwind_space *s, uint32_t list, uint32_t number, uint64_t hash)
{
	struct watch *w = &s->versions.watch;

	if (list != w->list || number >= w->n)
		return;
	w->hashes[number] = hash;
	w->has_news = true;
}

void unwind_space_watch_again(struct unwind_space *s)
{
	struct watch *w = &s->versions.watch;

	memset(w->hashes, 0, sizeof(w->hashes));
	w->has_news = true;
	w->changed = w->n > 0;
}

bool unwind_space_has_doubt(struct unwind_space *s)
{
	versions_settle(s);
	return s->versions.watch.has_doubt;
}

void unwind_space_open_watched(struct unwind_space *s)
{
	cache_begin(s->cache);
	space_begin(s);
	for (size_t i = 0; i < s->versions.watch.n_places; i++)
		(void)space_any_mapping(s, s->versions.watch.places[i]);
	cache_end(s->cache);
}
