/*
 * Reads the profile in a page that export_html() has written (proto/export/html/html.h, which
 * defines the bytes): a chunk for each process.
 *
 * The page may come from anyone, so it is checked like a payload (chunk.h). The chunks have no
 * images and no measurements, and their functions have the names that the page shows.
 */
#ifndef PROTO_IMPORT_PAGE_H
#define PROTO_IMPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/import/chunk.h"

/*
 * The limit of a page's unpacked data, in bytes. Without it a small page could fill the memory,
 * because deflate packs up to a thousand bytes into one. A million samples take less than 10 MB.
 */
#define IMPORT_PAGE_MAX (128u << 20)

/*
 * The limit of rows of a page. A row is an element of a block, a bar, or a frame or node that a
 * process uses: a frame that two processes use is two further rows. A row takes up to 80 bytes of
 * memory until the profile is written, so that a small page takes at most 1.3 GiB. The limit allows
 * the samples of 46 threads that run for an hour, at 100 Hz.
 */
#define IMPORT_PAGE_ROWS_MAX (16u << 20)

/*
 * The limit of frames in all stacks of a page together, because data of a few bytes can have deep
 * stacks. It allows half a million different stacks of 60 frames.
 */
#define IMPORT_PAGE_FRAMES_MAX (32u << 20)

struct import_page;

/* Returns true if the size bytes, a file's content, begin as a page does: "<!DOCTYPE html>". */
bool import_is_page(const char *bytes, size_t size);

/*
 * Reads the data of the page in bytes to *ret, which the caller frees with import_page_free(). Does
 * not keep bytes. Returns 0, -EBADMSG with *fault (also for a page that compares two profiles), or
 * -ENOMEM.
 */
int import_page_open(const char *bytes, size_t size, struct import_page **ret,
		     struct import_fault *fault) __attribute__((warn_unused_result));

/*
 * Makes the chunk of the next process. The caller releases the chunk by import_chunk_fini(), before
 * import_page_free(): strings of the chunk belong to the page. Returns 1 with a chunk, 0 at the
 * end, -EBADMSG with *fault, or -ENOMEM. After an error all further calls return 0.
 */
int import_page_next(struct import_page *p, struct import_chunk *ret, struct import_fault *fault)
	__attribute__((warn_unused_result));

void import_page_free(struct import_page *p); /* accepts NULL */

#endif
