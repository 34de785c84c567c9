/*
 * Opens the file of one mapping of a target: calls the functions that the user of lib/unwind gave
 * (struct unwind_files), with the mapping's range of addresses.
 *
 * The module also marks the file in use, the one that is being read: it stores the file's number in
 * the memory that unwind_cache_options.reading points to. If a file makes this process crash, the
 * parent process finds there which file it was.
 */
#ifndef LIB_UNWIND_IMAGE_FILE_SOURCE_H
#define LIB_UNWIND_IMAGE_FILE_SOURCE_H

#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/unwind.h"

/* A value type: nothing is owned. */
struct file_source {
	const struct unwind_files *files;
	void *ctx;	/* the first argument of the functions in files */
	uint64_t start; /* the range of the mapping in the target; end is exclusive */
	uint64_t end;
	uint32_t *reading; /* unwind_cache_options.reading; may be NULL */
};

/*
 * Marks the file of this number as the one that is read from now on; 0: no file is read. Does
 * nothing if reading is NULL. The fence makes the compiler store the number before it reads the
 * file.
 */
static inline void reading_set(uint32_t *reading, uint32_t number)
{
	if (!reading)
		return;
	__atomic_store_n(reading, number, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Returns the number of the file that s->files returned last; 0: the file has no number. */
uint32_t file_source_number(const struct file_source *s);

/* Marks the file that s->files returned last as the one that is read. */
void file_source_mark(const struct file_source *s);

/*
 * Opens the file of the mapping and marks it as the one that is read. The caller closes *ret_fd.
 * Returns 0, or the error of s->files->image: then the former mark is replaced by 0 (no file).
 */
must_check int file_source_open(const struct file_source *s, int *ret_fd);

#endif
