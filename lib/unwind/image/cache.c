#include "lib/unwind/image/cache.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/unwind/image/debug_file.h"

int unwind_cache_new(const struct unwind_cache_options *options, struct unwind_cache **ret)
{
	struct unwind_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->options = *options;
	c->debug.fd = -1;
	*ret = c;
	return 0;
}

void unwind_cache_free(struct unwind_cache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++) {
		assert(c->images[i]->refs == 0);
		image_free(c->images[i]);
	}
	free(c->images);
	free(c);
}

void cache_begin(struct unwind_cache *c)
{
	c->clock++;
}

/*
 * Returns the least recently used image, but none that was used in this call. unreferenced: among
 * the images that no space maps; otherwise among those with memory to free. NULL: there is none.
 */
static struct image *find_oldest(const struct unwind_cache *c, bool unreferenced, size_t *ret_index)
{
	struct image *found = NULL;

	for (size_t i = 0; i < c->n; i++) {
		struct image *image = c->images[i];

		if (image->last_use == c->clock ||
		    (unreferenced ? image->refs > 0 : image_bytes(image) == 0))
			continue;
		if (!found || image->last_use < found->last_use) {
			found = image;
			*ret_index = i;
		}
	}
	return found;
}

static void remove_at(struct unwind_cache *c, size_t index)
{
	image_free(c->images[index]);
	c->images[index] = c->images[--c->n];
}

void cache_add_perf_map(struct unwind_cache *c, struct perf_map *m)
{
	m->next = c->perf_maps;
	c->perf_maps = m;
}

void cache_remove_perf_map(struct unwind_cache *c, struct perf_map *m)
{
	struct perf_map **at = &c->perf_maps;

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
}

size_t cache_bytes(const struct unwind_cache *c)
{
	size_t bytes = 0;

	for (size_t i = 0; i < c->n; i++)
		bytes += image_bytes(c->images[i]);
	for (const struct perf_map *m = c->perf_maps; m; m = m->next)
		bytes += perf_map_bytes(m);
	return bytes;
}

/* Returns the least recently used perf map with memory to free, but none that was used in this
 * call. */
static struct perf_map *find_oldest_perf_map(const struct unwind_cache *c)
{
	struct perf_map *found = NULL;

	for (struct perf_map *m = c->perf_maps; m; m = m->next)
		if (m->last_use != c->clock && perf_map_bytes(m) > 0 &&
		    (!found || m->last_use < found->last_use))
			found = m;
	return found;
}

/*
 * Frees what was read from the file of an image that is still mapped, and sets when the cache may
 * read the file again.
 */
static void drop(struct unwind_cache *c, struct image *i)
{
	image_drop(i);
	i->again_at = c->clock + i->read_ns / CACHE_READ_NS;
	i->read_ns = 0;
}

static void evict(struct unwind_cache *c)
{
	size_t bytes = cache_bytes(c);
	size_t index = 0;

	while (bytes > c->options.max_bytes) {
		struct image *image = find_oldest(c, false, &index);
		struct perf_map *map = find_oldest_perf_map(c);

		if (map && (!image || map->last_use < image->last_use)) {
			bytes -= perf_map_bytes(map);
			perf_map_drop(map);
			continue;
		}
		if (!image)
			break;
		bytes -= image_bytes(image);
		c->generation++;
		if (image->refs == 0)
			remove_at(c, index);
		else
			drop(c, image);
	}
}

void cache_end(struct unwind_cache *c)
{
	while (c->n_open > 0)
		close_fd(&c->open[--c->n_open].fd);
	close_fd(&c->debug.fd);
	c->debug.image = NULL;
	if (c->grown)
		evict(c);
	c->grown = false;
	reading_set(c->options.reading, 0);
}

/* Keeps fd open until the end of the call. Closes the oldest if there are too many. */
static void keep_open(struct unwind_cache *c, struct image *i, int fd)
{
	if (c->n_open == CACHE_OPEN_MAX) {
		close_fd(&c->open[0].fd);
		memmove(&c->open[0], &c->open[1], (CACHE_OPEN_MAX - 1) * sizeof(c->open[0]));
		c->n_open--;
	}
	c->open[c->n_open++] = (struct cache_open){i, fd};
}

static int add_image(struct unwind_cache *c, int fd, const struct image_identity *identity,
		     struct image **ret)
{
	struct image *image;
	size_t index;
	int r;

	if (c->n == CACHE_IMAGES_MAX) {
		if (!find_oldest(c, true, &index))
			return -ENOSPC;
		remove_at(c, index);
	}
	if (array_grow(c->images, c->n, c->cap) < 0)
		return -ENOMEM;
	r = image_new(fd, identity, c->options.hash_seed, &image);
	if (r)
		return r;
	c->images[c->n++] = image;
	*ret = image;
	return 0;
}

static bool find(const struct unwind_cache *c, const struct image_identity *identity,
		 struct image **ret)
{
	for (size_t i = 0; i < c->n; i++)
		if (image_identity_equal(&c->images[i]->identity, identity)) {
			*ret = c->images[i];
			return true;
		}
	return false;
}

static void add_reference(struct unwind_cache *c, struct image *i)
{
	i->refs++;
	i->last_use = c->clock;
	if (i->debug_file_due)
		image_search_debug_file_again(i);
}

struct image *cache_get_known(struct unwind_cache *c, const struct file_identity *file)
{
	const struct image_identity identity = {.file = *file};
	struct image *found = NULL;

	if (find(c, &identity, &found))
		add_reference(c, found);
	return found;
}

struct image *cache_get_vdso(struct unwind_cache *c, uint64_t size)
{
	for (size_t i = 0; i < c->n; i++) {
		struct image *image = c->images[i];

		if (image->is_vdso && image->identity.file.size == size) {
			add_reference(c, image);
			return image;
		}
	}
	return NULL;
}

int cache_get(struct unwind_cache *c, const struct file_source *source, struct image **ret)
{
	struct image_identity identity;
	struct image *found = NULL;
	int fd = -1;
	int r;

	r = file_source_open(source, &fd);
	if (r)
		return r;
	r = image_identify(fd, c->options.hash_seed, &identity);
	if (r == 0 && !find(c, &identity, &found))
		r = add_image(c, fd, &identity, &found);
	if (r) {
		close_fd(&fd);
		return r;
	}
	keep_open(c, found, fd);
	found->number = file_source_number(source);
	add_reference(c, found);
	*ret = found;
	return 0;
}

void cache_put(struct image *i)
{
	if (!i)
		return;
	assert(i->refs > 0);
	if (--i->refs > 0)
		return;
	image_close_lines_file(i);
	i->lines_file.sought = false;
}

/*
 * Returns true if the file behind fd, whose identity this is, still is the image's. If its change
 * time differs, or it is another copy in memory, *i gets the new identity.
 */
static bool is_still(struct image *i, int fd, const struct image_identity *identity)
{
	struct image_identity expected = i->identity;

	if (image_identity_equal(identity, &expected))
		return true;
	expected.file.ctime_ns = identity->file.ctime_ns;
	/* A file on FUSE is copied into a new memfd at each request. All memfds have one device. */
	if (fcntl(fd, F_GET_SEALS) >= 0)
		expected.file.inode = identity->file.inode;
	if (!image_identity_equal(identity, &expected) || !image_matches(i, fd))
		return false;
	i->identity = *identity;
	return true;
}

int cache_fd(struct unwind_cache *c, struct image *i, const struct file_source *source)
{
	struct image_identity identity;
	int fd = -1;
	int r;

	cache_mark_file(c, i);
	for (size_t k = 0; k < c->n_open; k++) {
		if (c->open[k].image == i)
			return c->open[k].fd;
	}
	r = file_source_open(source, &fd);
	if (r)
		return r;
	r = image_identify(fd, c->options.hash_seed, &identity);
	if (r == 0 && !is_still(i, fd, &identity))
		r = -ESTALE;
	if (r) {
		close_fd(&fd);
		return r;
	}
	keep_open(c, i, fd);
	i->number = file_source_number(source);
	return fd;
}

static uint64_t cpu_ns(const struct unwind_cache *c)
{
	return c->options.cpu_ns ? c->options.cpu_ns() : 0;
}

/* Reads a part of the image from fd, its own file. Returns 0, or a negative errno. */
typedef int load_fn(struct unwind_cache *c, struct image *i, int fd,
		    const struct file_source *source);

/* Opens the image's file and has a part of it read. Returns as cache_rows(). */
static int read_part(struct unwind_cache *c, struct image *i, const struct file_source *source,
		     load_fn *load)
{
	uint64_t since;
	int fd, r;

	if (c->clock < i->again_at)
		return -EAGAIN;
	fd = cache_fd(c, i, source);
	if (fd < 0)
		return fd;
	c->grown = true;
	since = cpu_ns(c);
	r = load(c, i, fd, source);
	i->read_ns += cpu_ns(c) - since;
	return r;
}

static int load_rows(struct unwind_cache *c, struct image *i, int fd,
		     const struct file_source *source)
{
	(void)c, (void)source;
	return image_load_rows(i, fd);
}

int cache_rows(struct unwind_cache *c, struct image *i, const struct file_source *source)
{
	i->last_use = c->clock;
	if (i->cfi_tried) {
		cache_mark_file(c, i);
		return 0;
	}
	return read_part(c, i, source, load_rows);
}

/*
 * Returns the descriptor of the image's separate debug file, which the cache closes; -1: none. fd
 * is the image's own file.
 */
static int find_debug_file(struct unwind_cache *c, struct image *i, int fd,
			   const struct file_source *source)
{
	struct cache_debug *debug = &c->debug;

	if (debug->image != i) {
		close_fd(&debug->fd);
		i->debug_file_due = debug_file_open(i, fd, source, &debug->fd) != 0;
		debug->number = file_source_number(source);
		debug->image = i;
	}
	reading_set(c->options.reading, debug->fd >= 0 ? debug->number : i->number);
	return debug->fd;
}

static int load_symbols(struct unwind_cache *c, struct image *i, int fd,
			const struct file_source *source)
{
	int debug_fd = i->has_symtab ? -1 : find_debug_file(c, i, fd, source);
	int packed_fd = -1;
	int r = 0;

	/* Symbols from .gnu_debugdata are the image's own. */
	if (debug_fd >= 0 && c->debug.number != i->number)
		i->names_number = c->debug.number;
	if (debug_fd < 0 && !i->has_symtab)
		r = debug_file_unpack(fd, &packed_fd);
	if (r == 0)
		r = image_load_symbols(i, fd, debug_fd >= 0 ? debug_fd : packed_fd);
	close_fd(&packed_fd);
	return r;
}

int cache_symbols(struct unwind_cache *c, struct image *i, const struct file_source *source)
{
	i->last_use = c->clock;
	if (i->symbols_tried) {
		cache_mark_symbol_file(c, i);
		return 0;
	}
	return read_part(c, i, source, load_symbols);
}

static int load_plt(struct unwind_cache *c, struct image *i, int fd,
		    const struct file_source *source)
{
	(void)c, (void)source;
	return image_load_plt(i, fd);
}

int cache_plt(struct unwind_cache *c, struct image *i, const struct file_source *source)
{
	return i->plt.is_loaded ? 0 : read_part(c, i, source, load_plt);
}

/*
 * Returns the bytes of memory that are freed when fd is closed: those of a copy in a memfd, which
 * has no name.
 */
static uint64_t memory_behind(int fd, const struct stat *st)
{
	return fcntl(fd, F_GET_SEALS) >= 0 && st->st_nlink == 0 ? (uint64_t)st->st_size : 0;
}

/*
 * Opens i->lines_file. It stays closed if the image has no debug information. Returns 0, the error
 * of cache_fd(), fcntl(2) or fstat(2), or that of debug_file_open().
 */
static int open_lines_file(struct unwind_cache *c, struct image *i,
			   const struct file_source *source)
{
	struct image_lines_file *f = &i->lines_file;
	struct stat st;
	int fd = cache_fd(c, i, source);

	if (fd < 0)
		return fd;
	if (!i->has_debug_info)
		fd = find_debug_file(c, i, fd, source);
	if (fd < 0)
		return i->debug_file_due ? -EAGAIN : 0;
	if (fstat(fd, &st))
		return -errno;
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (f->fd < 0)
		return -errno;
	f->number = i->has_debug_info ? i->number : c->debug.number;
	f->file = file_identity_of(&st);
	f->since = c->clock;
	f->memory_bytes = memory_behind(f->fd, &st);
	return 0;
}

/* Closes the lines files that were opened first, until the others are within the limits. */
static void limit_lines_files(struct unwind_cache *c)
{
	for (;;) {
		struct image *oldest = NULL;
		uint64_t bytes = 0;
		size_t n = 0;

		for (size_t i = 0; i < c->n; i++) {
			const struct image_lines_file *f = &c->images[i]->lines_file;

			if (f->fd < 0)
				continue;
			n++;
			bytes += f->memory_bytes;
			if (!oldest || f->since < oldest->lines_file.since)
				oldest = c->images[i];
		}
		if (n <= c->options.max_files && bytes <= CACHE_OPEN_MEMORY_MAX)
			return;
		image_close_lines_file(oldest);
	}
}

void cache_open_lines_file(struct unwind_cache *c, struct image *i,
			   const struct file_source *source)
{
	uint64_t since;

	if (i->lines_tried || i->lines_file.sought)
		return;
	since = cpu_ns(c);
	i->lines_file.sought = true;
	if (open_lines_file(c, i, source))
		return;
	i->lines_tried = i->lines_file.fd < 0;
	limit_lines_files(c);
	i->read_ns += cpu_ns(c) - since;
}

/* Returns true if the lines file was not changed since it was opened, or has the same contents. */
static bool lines_file_is_unchanged(const struct image *i)
{
	const struct image_lines_file *f = &i->lines_file;
	struct file_identity now;
	struct stat st;

	if (fstat(f->fd, &st))
		return false;
	now = file_identity_of(&st);
	return file_identity_equal(&now, &f->file) ||
	       (now.size == f->file.size && image_matches(i, f->fd));
}

int cache_lines(struct unwind_cache *c, struct image *i, const struct file_source *source)
{
	struct image_lines_file *f = &i->lines_file;
	uint64_t since;
	int r = 0;

	i->last_use = c->clock;
	if (i->lines_tried) {
		reading_set(c->options.reading, f->number);
		return 0;
	}
	if (c->clock < i->again_at)
		return -EAGAIN;
	reading_set(c->options.reading, f->fd >= 0 ? f->number : i->number);
	since = cpu_ns(c);
	if (f->fd < 0)
		r = open_lines_file(c, i, source);
	else if (!lines_file_is_unchanged(i))
		r = -ESTALE;
	if (r) {
		image_close_lines_file(i);
		return r;
	}
	if (f->fd >= 0)
		reading_set(c->options.reading, f->number);
	c->grown = true;
	r = image_load_lines(i, f->fd, c->options.cpu_ns);
	image_close_lines_file(i);
	i->read_ns += cpu_ns(c) - since;
	return r;
}
