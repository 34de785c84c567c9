/*
 * The images of all targets of this process, found by who the file is.
 *
 * An image lives as long as a space maps it, and afterwards until its place
 * is needed. What it weighs (rows, names) is bounded for all images together,
 * and with them what spaces know of code without a file (perf_map.h): at the
 * end of a call those that were not used the longest lose it, and get it again
 * by reading the file.
 */
#ifndef LIB_UNWIND_IMAGE_CACHE_H
#define LIB_UNWIND_IMAGE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/image/file_source.h"
#include "lib/unwind/image/image.h"
#include "lib/unwind/image/perf_map.h"
#include "lib/unwind/unwind.h"

/*
 * Files held open within one call, so that it asks once for each. A stack goes
 * through few images; beyond that the file is asked for again.
 */
#define CACHE_OPEN_MAX 8
/* 200 targets with 100 libraries each that no other target has. */
#define CACHE_IMAGES_MAX 20000

struct cache_open {
	struct image *image;
	int fd;
};

struct unwind_cache {
	struct unwind_cache_options options;
	struct image **images;
	size_t n;
	size_t cap;
	struct perf_map *maps; /* one of each space */
	uint64_t clock;	       /* counts calls */
	uint64_t unread_at;    /* the last one in which code could not be read */
	uint64_t generation;   /* grows when rows that were given out are freed */
	uint64_t stack_ids;    /* unwind_stack.id was given out up to this */
	struct cache_open open[CACHE_OPEN_MAX];
	size_t n_open;
	bool grown; /* bytes were added in this call */
};

/* The same of an image's; cache_end says that there is none any more. */
static inline void cache_reads(const struct unwind_cache *c, const struct image *i)
{
	reading_set(c->options.reading, i->number);
}

/* Of the file that its names are from. */
static inline void cache_reads_names(const struct unwind_cache *c, const struct image *i)
{
	reading_set(c->options.reading, i->names_number != 0 ? i->names_number : i->number);
}

/* Every public function of unwind.h works between these two. */
void cache_begin(struct unwind_cache *c);
void cache_end(struct unwind_cache *c);

/* The bytes that the budget bounds. */
size_t cache_bytes(const struct unwind_cache *c);

/* A space's perf map, from its beginning to its end. */
void cache_add_map(struct unwind_cache *c, struct perf_map *m);
void cache_remove_map(struct unwind_cache *c, struct perf_map *m);

/*
 * The image of a mapping, made if it is new; the caller has a reference.
 * Returns 0, the error of files->image, -EINVAL if it is no regular file,
 * -ENOMEM, -ENOSPC above CACHE_IMAGES_MAX.
 */
must_check int cache_get(struct unwind_cache *c, const struct file_source *source,
			 struct image **ret);
/*
 * The image of this file, if it is in the cache; the caller has a reference.
 * NULL: it is not.
 */
struct image *cache_get_known(struct unwind_cache *c, const struct file_identity *file);
/*
 * The kernel's vDSO of this size, likewise: it is the same in all processes.
 */
struct image *cache_get_vdso(struct unwind_cache *c, uint64_t size);
/* Gives the reference back. Takes NULL. */
void cache_put(struct image *i);

/*
 * The image's file, open until cache_end, which closes it. Returns a negative
 * errno if it can't be had, -ESTALE if it is another file by now.
 */
must_check int cache_fd(struct unwind_cache *c, struct image *i, const struct file_source *source);

/*
 * Have the rows, the symbols, the debug information read. Returns 0, also if
 * the file has none, or the error of cache_fd, -ENOMEM.
 */
must_check int cache_rows(struct unwind_cache *c, struct image *i,
			  const struct file_source *source);
must_check int cache_symbols(struct unwind_cache *c, struct image *i,
			     const struct file_source *source);
must_check int cache_lines(struct unwind_cache *c, struct image *i,
			   const struct file_source *source);

#endif
