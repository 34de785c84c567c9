/*
 * The cache of images: one image for each file that any target of this process maps, found by the
 * identity of the file. An image has all that was read from its file (image.h). A space is the
 * address space of one target. A "call" is a call of a function of unwind.h that may read files: it
 * lasts from cache_begin() to cache_end().
 *
 * An image stays in the cache while a space maps it, and afterwards until the cache is full. One
 * limit, unwind_cache_options.max_bytes, holds for what was read from files into all images and all
 * perf maps (names of code that a target made at run time). If memory grew above the limit in a
 * call, cache_end() goes through images and perf maps, the least recently used first, until memory
 * is below the limit. It frees an image that no space maps. From other images and from perf maps it
 * drops what was read (image_drop(), perf_map_drop()); the cache reads this again when needed.
 *
 * Files stay open during one call, so that the cache requests each only once. One kind of file
 * stays open for longer, in a space with UNWIND_SYMBOLS_LINES: the file with the debug information
 * of an image (struct image_lines_file). It is opened at the first look-up in the image and closed
 * when its lines have been read, at the end of a chunk: the target may have ended by then, and its
 * files could not be opened. unwind_cache_options.max_files and CACHE_OPEN_MEMORY_MAX limit these
 * files; the one that was opened first is closed first.
 *
 * Order of calls for a mapping: cache_begin(); cache_get(), which makes or finds the image;
 * cache_rows() before image_rows() of image.h, cache_symbols() before the names, and so on;
 * cache_end(). The space calls cache_put() when the mapping has gone.
 *
 * The cache does not read a dropped image again at once, but only after a number of calls that is
 * in proportion to the processor time of the last reading (CACHE_READ_NS). Otherwise files that do
 * not fit into the cache together would be read at each sample.
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
 * The most files that stay open during one call, so that the cache requests each
 * only once. A stack goes through few images; further files are requested again.
 */
#define CACHE_OPEN_MAX 8
/*
 * The most bytes of memory that the files of all image_lines_file hold. A file holds memory if it
 * is a copy in a memfd. The limit is the largest copy (OPEN_COPY_MAX in daemon/process/open.h).
 */
#define CACHE_OPEN_MEMORY_MAX (64u << 20)
/*
 * Before the cache reads a dropped image again, it waits one call for each CACHE_READ_NS of
 * processor time that the last readings took. Example: 5 ms of reading, 50 calls. Reading a large
 * library takes some milliseconds. Small sections that unpack to 500 MB take seconds.
 */
#define CACHE_READ_NS (100 * NS_PER_US)
/* The most images: enough for 200 targets with 100 libraries each that no other target has. */
#define CACHE_IMAGES_MAX 20000

/* A file that stays open until cache_end(), or until CACHE_OPEN_MAX further files are opened. */
struct cache_open {
	struct image *image;
	int fd;
};

/* The debug file that was searched for last in this call. */
struct cache_debug {
	const struct image *image; /* NULL: none was searched for */
	int fd;			   /* -1: the image has none */
	uint32_t number;	   /* unwind_files.number() of it */
};

struct unwind_cache {
	struct unwind_cache_options options;
	struct image **images; /* owned by the cache */
	size_t n;
	size_t cap;
	struct perf_map *perf_maps; /* list: one of each space */
	uint64_t clock;		    /* number of calls of cache_begin() so far */
	uint64_t unread_at;	    /* clock of the last call in which reading code failed */
	uint64_t generation;	    /* grows when rows are freed: pointers to rows are stale */
	uint32_t watch_lists;	    /* the unwind_watch.list that was given out last */
	uint64_t stack_ids;	    /* the unwind_stack.id that was given out last */
	struct cache_open open[CACHE_OPEN_MAX];
	size_t n_open;
	struct cache_debug debug;
	bool grown; /* memory grew in this call */
};

/*
 * Marks the image's own file as the one in use (file_source.h), until another file is marked, or
 * cache_end().
 */
static inline void cache_mark_file(const struct unwind_cache *c, const struct image *i)
{
	reading_set(c->options.reading, i->number);
}

/* Likewise marks the file from which the image's symbols are: its own or its debug file. */
static inline void cache_mark_symbol_file(const struct unwind_cache *c, const struct image *i)
{
	reading_set(c->options.reading, i->names_number != 0 ? i->names_number : i->number);
}

/*
 * Begin and end a call. Each public function of unwind.h that may read a file calls cache_begin()
 * first and cache_end() last; call all functions below that read files in between. cache_end()
 * closes open files, frees memory above the limit except what this call has used, and clears the
 * mark of the file in use. After cache_end(), unwind_symbol_at() and unwind_lines_at() mark the
 * file of the texts that they return: the caller handles these texts, and may crash in doing so.
 */
void cache_begin(struct unwind_cache *c);
void cache_end(struct unwind_cache *c);

/* Returns the bytes of memory of all images and perf maps, which max_bytes limits. */
size_t cache_bytes(const struct unwind_cache *c);

/*
 * Add and remove the perf map of a space. The space owns the perf map, and removes it from the
 * cache before freeing it.
 */
void cache_add_perf_map(struct unwind_cache *c, struct perf_map *m);
void cache_remove_perf_map(struct unwind_cache *c, struct perf_map *m);

/*
 * Gets the image of a mapping, and makes it if it is not in the cache. The caller gets
 * a reference, which it gives back by cache_put(). Returns 0, the error of
 * unwind_files.image, an error of image_identify() (-EINVAL: not a regular file, or
 * empty), -ENOMEM, or -ENOSPC if CACHE_IMAGES_MAX images are in use.
 */
must_check int cache_get(struct unwind_cache *c, const struct file_source *source,
			 struct image **ret);
/*
 * Returns the image of a file whose identity is known, without requesting the file. The
 * caller gets a reference. Returns NULL if it is not in the cache.
 */
struct image *cache_get_known(struct unwind_cache *c, const struct file_identity *file);
/*
 * Returns the image of the vDSO of this size, which is the same in all processes. The caller
 * gets a reference. Returns NULL if it is not in the cache.
 */
struct image *cache_get_vdso(struct unwind_cache *c, uint64_t size);
/* Gives a reference back. With the last one, closes i->lines_file. i may be NULL. */
void cache_put(struct image *i);

/*
 * Returns a descriptor of the image's file, and marks the file as the one in use. The cache closes
 * the descriptor when it needs its place for another file (CACHE_OPEN_MAX), in cache_end() at the
 * latest: use it before you call the cache again. source: a mapping of the file. On an error the
 * result is negative:
 * -ESTALE if the mapping has another file by now, or the file has other contents (image_matches());
 * or an error of cache_get(), but not -ENOSPC.
 */
must_check int cache_fd(struct unwind_cache *c, struct image *i, const struct file_source *source);

/*
 * Read the rows (unwind rules), symbols, names of PLT stubs or source lines of an image from its
 * file, unless they were read before. source: a mapping of the file. Return 0, also if the file has
 * none; an error of cache_fd(); -EAGAIN if the image was dropped and its file must not be read
 * again yet (CACHE_READ_NS); or -ENOMEM. cache_lines() also returns -EAGAIN if the debug file
 * cannot be opened now, -ESTALE if i->lines_file has changed, or an error of fstat(2) or fcntl(2).
 */
must_check int cache_rows(struct unwind_cache *c, struct image *i,
			  const struct file_source *source);
must_check int cache_symbols(struct unwind_cache *c, struct image *i,
			     const struct file_source *source);
/* Call cache_symbols() first. */
must_check int cache_plt(struct unwind_cache *c, struct image *i, const struct file_source *source);
must_check int cache_lines(struct unwind_cache *c, struct image *i,
			   const struct file_source *source);

/*
 * Opens i->lines_file for a later cache_lines(). Does nothing if the lines have been read, or if
 * this function has tried before (image_lines_file.sought). image_drop(),
 * image_search_debug_file_again() and the cache_put() of the last reference permit another try, if
 * the file is not open. May close the lines files of other images. Ignores errors: cache_lines()
 * requests the file again.
 */
void cache_open_lines_file(struct unwind_cache *c, struct image *i,
			   const struct file_source *source);

#endif
