/*
 * Reads the profile in a page that export_html() has written (proto/export/html/html.h, which
 * defines the bytes): a chunk for each process.
 *
 * The page may come from anyone, and is checked as a payload is (chunk.h). A page has no images and
 * no measurements, and its functions have the names that it shows.
 */
#ifndef PROTO_IMPORT_PAGE_H
#define PROTO_IMPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/import/chunk.h"

/*
 * The limit of a page's data when they are unpacked, in bytes: deflate packs a thousand to one. A
 * million samples take less than 10 MB.
 */
#define IMPORT_PAGE_MAX (128u << 20)

/*
 * The limit of frames in all stacks of a page, for half a million different stacks of 60 frames:
 * data of a few bytes can have deep stacks.
 */
#define IMPORT_PAGE_FRAMES_MAX (32u << 20)

struct import_page;

/* Returns true if the content of a file begins as a page does. */
bool import_is_page(const char *bytes, size_t size);

/*
 * Reads the data of a page, which import_page_free() frees; bytes are not kept. Returns 0, -EBADMSG
 * with *fault (also for a page that compares two profiles), or -ENOMEM.
 */
int import_page_open(const char *bytes, size_t size, struct import_page **ret,
		     struct import_fault *fault) __attribute__((warn_unused_result));

/*
 * Makes the chunk of the next process, which the caller releases by import_chunk_fini() before
 * import_page_free(): strings of the chunk belong to the page. Returns 1 with a chunk, 0 at the
 * end, -EBADMSG with *fault, or -ENOMEM.
 */
int import_page_next(struct import_page *p, struct import_chunk *ret, struct import_fault *fault)
	__attribute__((warn_unused_result));

void import_page_free(struct import_page *p); /* accepts NULL */

#endif
