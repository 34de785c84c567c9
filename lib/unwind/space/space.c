#include "lib/unwind/space/space.h"

#include <stdlib.h>
#include <string.h>

int unwind_space_new(struct unwind_cache *c, const struct unwind_files *files, void *ctx,
		     struct unwind_space **ret)
{
	struct unwind_space *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->cache = c;
	s->files = files;
	s->ctx = ctx;
	s->symbols = UNWIND_SYMBOLS_NAMES;
	perf_map_init(&s->perf_map);
	cache_add_perf_map(c, &s->perf_map);
	*ret = s;
	return 0;
}

void unwind_space_set_symbols(struct unwind_space *s, enum unwind_symbols symbols)
{
	s->symbols = symbols;
}

static void put_images(struct unwind_space *s)
{
	for (size_t i = 0; i < s->maps.n; i++)
		cache_put(s->mappings[i].image);
}

void unwind_space_free(struct unwind_space *s)
{
	if (!s)
		return;
	versions_fini(s);
	put_images(s);
	free(s->mappings);
	maps_fini(&s->maps);
	free(s->pc_infos);
	cache_remove_perf_map(s->cache, &s->perf_map);
	perf_map_fini(&s->perf_map);
	memos_fini(&s->memos);
	free(s);
}

static bool same_file(const struct map *a, const struct map *b)
{
	return a->device == b->device && a->inode == b->inode && strcmp(a->path, b->path) == 0;
}

bool space_still_there(const struct map *old, const struct maps *maps)
{
	uint64_t at = old->start;

	while (at < old->end) {
		const struct map *now = maps_find(maps, at);

		if (!now || !same_file(old, now))
			return false;
		/* Without a file the offset has no meaning. */
		if (old->inode != 0 && now->offset - now->start != old->offset - old->start)
			return false;
		at = now->end;
	}
	return true;
}

/* Returns true if both map the same part of a file at the same place, or its beginning. */
static bool is_part(const struct map *old, const struct map *new)
{
	return same_file(old, new) && old->start == new->start && old->offset == new->offset;
}

/*
 * Returns true if the image of old may be used for new. Memory without a file was copied from its
 * range, so the range must be the same.
 */
static bool keeps_image(const struct map *old, const struct map *new)
{
	return is_part(old, new) && (old->inode != 0 || old->end == new->end);
}

void space_forget_lookups(struct unwind_space *s)
{
	free(s->pc_infos);
	s->pc_infos = NULL;
	memos_clear(&s->memos);
}

/* Takes maps and mappings over; there are as many of both. */
static void replace_maps(struct unwind_space *s, const struct maps *maps,
			 struct space_mapping *mappings)
{
	put_images(s);
	free(s->mappings);
	maps_fini(&s->maps);
	s->maps = *maps;
	s->mappings = mappings;
	s->far_path = NULL;
	s->lines_limited = NULL;
	s->perf_map_asked = false;
	perf_map_reset_reads(&s->perf_map);
	space_forget_lookups(s);
}

/*
 * Moves the mapping from, of old, to *to, of now, which is one of maps. Leaves both as they are if
 * the file has to be requested again: it was refused, which may have been for a moment only, or the
 * mapping of the file is gone that told the image.
 */
static void keep_mapping(const struct map *old, struct space_mapping *from, const struct maps *maps,
			 const struct map *now, struct space_mapping *to)
{
	const struct map *file = from->file.start == old->start ? now : maps_above(maps, now);

	if (from->refused || (from->image && !(file && is_part(&from->file, file)))) {
		to->doubts = from->doubts;
		if (to->doubts < SPACE_DOUBTS_MAX)
			to->doubts++;
		return;
	}
	*to = *from;
	if (to->image)
		to->file = *file;
	to->lost = false;
	if (to->is_doubted && ++to->doubts >= SPACE_DOUBTS_MAX) {
		to->trusts_maps = true;
		to->is_doubted = false;
		to->n_parts = 0;
	}
	memset(from, 0, sizeof(*from));
}

/* Moves replaced mappings that are back to the mappings of maps. */
static void restore_mappings(struct unwind_space *s, const struct maps *maps,
			     struct space_mapping *mappings)
{
	for (size_t i = s->versions.n; i-- > 0;) {
		const struct map *old = versions_map(s, i);
		const struct map *now = maps_find(maps, old->start);
		struct space_mapping *to = now ? &mappings[now - maps->v] : NULL;

		if (!to || to->tried || !keeps_image(old, now))
			continue;
		keep_mapping(old, versions_mapping(s, i), maps, now, to);
		to->doubts = 0;
	}
}

int unwind_space_set_maps(struct unwind_space *s, const char *text, size_t size)
{
	struct space_mapping *mappings;
	struct maps maps;
	bool full;
	int r;

	r = maps_parse(&maps, text, size, UNWIND_MAPS_MAX);
	if (r)
		return r;
	mappings = calloc(maps.n + 1, sizeof(*mappings));
	if (!mappings) {
		maps_fini(&maps);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->maps.n; i++) {
		const struct map *old = &s->maps.v[i];
		const struct map *now = maps_find(&maps, old->start);

		if (now && keeps_image(old, now))
			keep_mapping(old, &s->mappings[i], &maps, now, &mappings[now - maps.v]);
	}
	restore_mappings(s, &maps, mappings);
	full = versions_are_full(s, &maps);
	versions_replace(s, &maps, full);
	replace_maps(s, &maps, mappings);
	if (full)
		versions_watch_anew(s);
	return 0;
}

/* Makes the image the only mapping of the space, at start. */
static int map_file(struct unwind_space *s, struct image *image, const char *path, uint64_t start)
{
	struct space_mapping *mappings = calloc(1, sizeof(*mappings));
	struct maps maps = {
		.v = calloc(1, sizeof(*maps.v)),
		.n = 1,
		.strings = strdup(path),
	};

	if (!mappings || !maps.v || !maps.strings) {
		free(mappings);
		maps_fini(&maps);
		return -ENOMEM;
	}
	maps.v[0] = (struct map){
		.start = start,
		.end = start + align_up(image->size, UNWIND_FILE_ALIGN),
		.path = maps.strings,
		.exec = true,
	};
	mappings[0] = (struct space_mapping){
		.image = image,
		.file = maps.v[0],
		.bias = start - image->base,
		.tried = true,
	};
	replace_maps(s, &maps, mappings);
	return 0;
}

int unwind_space_set_file(struct unwind_space *s, const char *path, uint64_t start)
{
	const struct file_source source = {s->files, s->ctx, start, start + UNWIND_FILE_ALIGN,
					   s->cache->options.reading};
	struct image *image = NULL;
	int r;

	cache_begin(s->cache);
	r = cache_get(s->cache, &source, &image);
	if (r == 0 && (!image->is_elf || image->size > UNWIND_FILE_MAX))
		r = -ENOEXEC;
	if (r == 0)
		r = map_file(s, image, path, start);
	if (r)
		cache_put(image);
	cache_end(s->cache);
	return r;
}

void unwind_space_set_identities(struct unwind_space *s, const struct mapped_file *files, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct map *map = maps_find(&s->maps, files[i].start);

		if (map && map->start == files[i].start)
			s->mappings[map - s->maps.v].identity = files[i].file;
	}
}

int unwind_space_would_forget(const struct unwind_space *s, const char *text, size_t size,
			      bool *ret)
{
	struct maps maps;
	int r;

	r = maps_parse(&maps, text, size, UNWIND_MAPS_MAX);
	if (r)
		return r;
	*ret = versions_are_full(s, &maps);
	maps_fini(&maps);
	return 0;
}

uint64_t unwind_space_take_far_mappings(struct unwind_space *s, const char **ret_path)
{
	const uint64_t n = s->far_mappings;

	*ret_path = s->far_path;
	s->far_mappings = 0;
	s->far_path = NULL;
	return n;
}

bool unwind_space_covers(const struct unwind_space *s, uint64_t addr)
{
	return maps_find(&s->maps, addr) != NULL;
}

struct file_source space_source(const struct unwind_space *s, const struct map *map)
{
	return (struct file_source){s->files, s->ctx, map->start, map->end,
				    s->cache->options.reading};
}

/*
 * Returns true for code that the target generated: a mapping without a file, perhaps with a name
 * that the target gave it (PR_SET_VMA_ANON_NAME). The vDSO is treated as a file.
 */
static bool is_anonymous(const struct map *map)
{
	return map->inode == 0 && (map->path[0] == '\0' || strncmp(map->path, "[anon:", 6) == 0);
}

bool space_read_image(struct unwind_space *s, struct space_mapping *m)
{
	const struct file_source source = space_source(s, &m->file);

	if (m->lost || cache_rows(s->cache, m->image, &source)) {
		m->lost = true;
		return false;
	}
	if (s->symbols != UNWIND_SYMBOLS_NONE)
		(void)!cache_symbols(s->cache, m->image, &source);
	if (s->symbols == UNWIND_SYMBOLS_LINES)
		cache_open_lines_file(s->cache, m->image, &source);
	return true;
}

bool space_read_plt(struct unwind_space *s, struct space_mapping *m)
{
	const struct file_source source = space_source(s, &m->file);

	return cache_symbols(s->cache, m->image, &source) == 0 &&
	       cache_plt(s->cache, m->image, &source) == 0;
}

/*
 * Gets the image of a mapping, from the cache or made from its file. "[vdso]" can only come from
 * the kernel: a path begins with a slash, and names that a target gives are marked
 * (is_anonymous()).
 */
static int get_image(struct unwind_space *s, const struct space_mapping *m, const struct map *map,
		     struct image **ret)
{
	const struct file_source source = space_source(s, map);
	const bool is_vdso = strcmp(map->path, "[vdso]") == 0;
	int r;

	*ret = NULL;
	if (is_vdso)
		*ret = cache_get_vdso(s->cache, map->end - map->start);
	else if (m->identity.inode != 0)
		*ret = cache_get_known(s->cache, &m->identity);
	if (*ret)
		return 0;
	r = cache_get(s->cache, &source, ret);
	if (r == 0)
		(*ret)->is_vdso = is_vdso;
	return r;
}

/*
 * Sets the image of m, of map, to that of the file that is mapped at file, if it has code at map.
 * Takes the image over. Returns false if it has none.
 */
static bool set_image(struct space_mapping *m, const struct map *map, const struct map *file,
		      struct image *image)
{
	if (image_bias(image, file->start, file->offset, file->exec, &m->bias) &&
	    (file == map || image_has_code(image, m->bias, map->start, map->end))) {
		m->image = image;
		m->file = *file;
		return true;
	}
	cache_put(image);
	return false;
}

/*
 * Returns true if the image certainly is that of another file than map: one that was mapped there
 * after the maps were read. The devices are those of different layers on some file systems, and a
 * memfd may have been copied to another one; then nothing is certain.
 */
static bool is_other_file(const struct map *map, const struct image *image)
{
	const struct image_identity *i = &image->identity;

	return i->content[0] == 0 && map->inode != 0 && i->file.device == map->device &&
	       i->file.inode != map->inode && strncmp(map->path, "/memfd:", 7) != 0;
}

/*
 * Finds the image of m. A copy of a file's text may begin with the header of the file, and is no
 * substitute for it. So the file above comes first.
 */
static bool find_image(struct unwind_space *s, struct space_mapping *m, const struct map *map)
{
	const struct map *above = maps_above(&s->maps, map);
	struct image *image;

	/* On aarch64 the vDSO lies between the segments of the dynamic linker. */
	if (above && strcmp(map->path, "[vdso]") != 0) {
		const struct file_source source = space_source(s, above);

		m->refused = cache_get(s->cache, &source, &image) != 0;
		if (!m->refused && set_image(m, map, above, image))
			return true;
	}
	m->generated = is_anonymous(map);
	if (m->generated)
		return false;
	m->refused = get_image(s, m, map, &image) != 0;
	if (m->refused)
		return false;
	if (!is_other_file(map, image))
		return set_image(m, map, map, image);
	cache_put(image);
	m->refused = true;
	return false;
}

/* Requests the file of m, the mapping map, and reads what a walk needs of it. */
static void try_mapping(struct unwind_space *s, const struct map *map, struct space_mapping *m)
{
	const bool found = find_image(s, m, map);

	m->tried = true;
	versions_add(s, map, m);
	if (!found)
		return;
	if (map->end - m->bias - m->image->base > UNWIND_CODE_MAX) {
		s->far_mappings++;
		s->far_path = m->file.path;
	}
	/* Later the file may be out of reach, because the target has exited. */
	(void)space_read_image(s, m);
}

struct space_mapping *space_any_mapping(struct unwind_space *s, uint64_t addr)
{
	const struct map *map = maps_find(&s->maps, addr);
	struct space_mapping *m = map ? &s->mappings[map - s->maps.v] : NULL;

	if (m && !m->tried)
		try_mapping(s, map, m);
	return m;
}

struct space_mapping *space_certain_mapping(struct unwind_space *s, uint64_t addr)
{
	struct space_mapping *m = space_any_mapping(s, addr);

	return m && !m->is_doubted ? m : NULL;
}

void space_open_perf_map(struct unwind_space *s)
{
	int fd;

	if (s->perf_map_asked || !s->files->perf_map || s->symbols == UNWIND_SYMBOLS_NONE)
		return;
	s->perf_map_asked = true;
	if (s->files->perf_map(s->ctx, &fd) == 0)
		perf_map_open(&s->perf_map, fd);
}

bool space_find_jit_symbol(struct unwind_space *s, uint64_t addr, const char **ret_name,
			   uint64_t *ret_offset)
{
	const size_t bytes = perf_map_bytes(&s->perf_map);
	int r = 0;

	s->perf_map.last_use = s->cache->clock;
	/* First the open file, then a new one. New lines may replace what is known of the address.
	 */
	for (int i = 0; i < 2 && r == 0; i++) {
		if (i == 1)
			space_open_perf_map(s);
		r = perf_map_update(&s->perf_map);
		s->cache->grown |= perf_map_bytes(&s->perf_map) != bytes;
		if (perf_map_find(&s->perf_map, addr, ret_name, ret_offset))
			return true;
	}
	return false;
}

void space_begin(struct unwind_space *s)
{
	if (s->generation == s->cache->generation)
		return;
	space_forget_lookups(s);
	s->generation = s->cache->generation;
}
