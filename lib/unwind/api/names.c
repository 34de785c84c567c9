#include "lib/unwind/unwind.h"

#include <string.h>

#include "lib/unwind/cpu.h"
#include "lib/unwind/space/space.h"

static void fill_image(const struct space_mapping *m, struct unwind_image *ret)
{
	const struct map *map = &m->file;
	const struct image *i = m->image;
	const bool has_file = i->identity.content[0] == 0;

	*ret = (struct unwind_image){
		.path = map->path,
		.id = i->id.size > 0 ? i->id.bytes : NULL,
		.id_size = i->id.size,
		.has_build_id = i->id.is_real,
		.addr = versions_mark(m, m->bias + i->base),
		.vmaddr = i->base,
		.size = i->size,
		.device = has_file ? i->identity.file.device : map->device,
		.inode = has_file ? i->identity.file.inode : map->inode,
		.is_go = i->is_go,
		.has_interpreter = i->has_interpreter,
	};
}

int unwind_image_at(struct unwind_space *s, uint64_t addr, struct unwind_image *ret)
{
	const struct space_mapping *m;

	cache_begin(s->cache);
	space_begin(s);
	m = versions_find(s, addr, &addr);
	if (m && m->image)
		fill_image(m, ret);
	cache_end(s->cache);
	return m && m->image ? 0 : -ENOENT;
}

/* Finds the image at a present mapping. */
static int image_now(struct unwind_space *s, const struct map *map, struct unwind_image *ret)
{
	const struct space_mapping *m;

	cache_begin(s->cache);
	space_begin(s);
	m = space_any_mapping(s, map->start);
	if (m->image)
		fill_image(m, ret);
	cache_end(s->cache);
	return m->image ? 0 : -ENOENT;
}

int unwind_image_of_path(struct unwind_space *s, const char *path, struct unwind_image *ret)
{
	for (size_t i = 0; i < s->maps.n; i++) {
		const struct map *map = &s->maps.v[i], *above = maps_above(&s->maps, map);

		if (strcmp(map->path, path) == 0)
			return image_now(s, map, ret);
		/* All of the file's text may be in other memory. */
		if (above && strcmp(above->path, path) == 0 && image_now(s, map, ret) == 0 &&
		    strcmp(ret->path, path) == 0)
			return 0;
	}
	return -ENOENT;
}

int unwind_symbol_at(struct unwind_space *s, uint64_t addr, const char **ret_name,
		     uint64_t *ret_offset)
{
	struct space_mapping *m;
	const struct image *named = NULL;
	bool is_stub = false;
	int r = -ENOENT;

	cache_begin(s->cache);
	space_begin(s);
	m = versions_find(s, addr, &addr);
	if (m && !m->image && space_find_jit_symbol(s, addr, ret_name, ret_offset))
		r = 0;
	if (m && m->image && s->symbols != UNWIND_SYMBOLS_NONE) {
		const uint64_t vaddr = addr - m->bias;
		struct file_source source = space_source(s, &m->file);

		is_stub = plt_covers(&m->image->plt, vaddr) && space_read_plt(s, m) &&
			  plt_name(&m->image->plt, vaddr, ret_name, ret_offset);
		if (is_stub || (cache_symbols(s->cache, m->image, &source) == 0 &&
				symbols_find(&m->image->symbols, vaddr, ret_name, ret_offset))) {
			named = m->image;
			r = 0;
		}
	}
	cache_end(s->cache);
	if (named && is_stub)
		cache_mark_file(s->cache, named);
	else if (named)
		cache_mark_symbol_file(s->cache, named);
	return r;
}

int unwind_function_at(struct unwind_space *s, uint64_t addr, uint64_t *ret_start)
{
	struct space_mapping *m;
	uint64_t vaddr;
	int r = -ENOENT;

	cache_begin(s->cache);
	space_begin(s);
	m = versions_find(s, addr, &addr);
	if (m && m->image && space_read_image(s, m) &&
	    rows_function(image_rows(m->image, addr - m->bias), addr - m->bias, &vaddr)) {
		*ret_start = versions_mark(m, vaddr + m->bias);
		r = 0;
	}
	/* A part of the rows may have been compiled. */
	s->cache->grown = true;
	cache_end(s->cache);
	return r;
}

uint64_t unwind_after_call(uint64_t addr)
{
	return addr + CPU_PC_STEP;
}

int unwind_lines_at(struct unwind_space *s, uint64_t addr, struct unwind_line ret[UNWIND_LINES_MAX],
		    size_t *ret_n)
{
	struct space_mapping *m;
	uint32_t number = 0;
	bool lost = false;
	size_t n = 0;

	if (s->symbols != UNWIND_SYMBOLS_LINES)
		return -ENOENT;
	cache_begin(s->cache);
	space_begin(s);
	m = versions_find(s, addr, &addr);
	if (m && m->image) {
		struct file_source source = space_source(s, &m->file);

		lost = cache_lines(s->cache, m->image, &source) != 0;
		if (m->image->lines) {
			n = lines_find(m->image->lines, addr - m->bias, ret);
			lost = n == 0 && lines_is_incomplete(m->image->lines);
			if (lost)
				s->lines_limited = m->file.path;
		}
		if (n > 0)
			number = m->image->lines_file.number;
		s->cache->grown = true;
	}
	/* Also if the file could not be opened when an address in it was looked up first. */
	s->lines_lost += lost || (m && m->refused);
	cache_end(s->cache);
	reading_set(s->cache->options.reading, number);
	*ret_n = n;
	return n > 0 ? 0 : -ENOENT;
}

void unwind_names_done(struct unwind_space *s)
{
	reading_set(s->cache->options.reading, 0);
}

const char *unwind_space_take_lines_limited(struct unwind_space *s)
{
	const char *path = s->lines_limited;

	s->lines_limited = NULL;
	return path;
}

uint64_t unwind_space_take_lines_lost(struct unwind_space *s)
{
	uint64_t n = s->lines_lost;

	s->lines_lost = 0;
	return n;
}
