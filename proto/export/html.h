/*
 * The page: one HTML file that shows a profile in a browser, from disk and
 * without network. It is proto/export/html/page.html with its style and its
 * script, which the build embeds (html_page.h), and with the profile as data.
 *
 * The data are a stream of bytes, compressed by deflate in zlib's format (RFC
 * 1950) and written as base64, so no text of a profile is markup of the page.
 * The stream is "SPH1" and then blocks. A block is a letter, the size of its
 * content (4 bytes, little-endian) and the content. Its reader is
 * proto/export/html/data.js, which skips blocks that it does not know.
 *
 * A number in a block is LEB128: 7 bits a byte, the lowest first, and bit 7 set
 * in all bytes but the last. Indices count from 0 in the order of the blocks:
 *
 *   S  strings: for each its length in bytes, its UTF-8. String 0 is "".
 *   P  processes: strings of profiler_id, platform, release and environment.
 *   F  frames: strings of name, module and source file; the line, 0: not
 *      known; a byte, 1: in_app; 8 bytes of address, little-endian, 0: not
 *      known.
 *   N  nodes of the trie of stacks: how many nodes before this one its parent
 *      stands, 0: none; the frame. Parents stand before their children.
 *   T  threads: the process, strings of id and name.
 *   R  of one thread: its index; when its first bar begins, in microseconds of
 *      Unix time; how many bars there are; of each its length in microseconds;
 *      then of each 2 * zigzag(d) + w: d is the difference of its node plus 1
 *      to that of the bar before (to 0 for the first), zigzag(d) is 2d for
 *      d >= 0, else -2d - 1. Node plus 1 is 0 where nothing is known of the
 *      thread. w is 1 if it waits. A bar begins where the one before ends.
 *   C  of a comparison (compare.h): for A and for B the string of its name and
 *      how long it lasted, in microseconds; then a byte for each process, 0:
 *      of A, 1: of B. Bars are sums then, each thread's end to end.
 *   E  the end: how many samples there were; a byte, 1: they say whether
 *      threads ran or waited. Data without this block are not complete.
 */
#ifndef PROTO_EXPORT_HTML_H
#define PROTO_EXPORT_HTML_H

#include <stdio.h>

#include "proto/export/export.h"

/*
 * Writes the page to out and flushes it. The merge is by address, keeps the
 * rest (release, environment, platform), and is ordered; or is that of
 * o->comparison. Neighbouring bars with
 * the same stack and state become one. Memory: what the tables of the merge
 * take, encoded; bars are compressed as they come. Returns 0, -ENOMEM, -E2BIG
 * if a table or a thread's bars are larger than HTML_BLOCK_MAX, or the error of
 * the stream (-EIO if that gives none).
 */
must_check int export_html(const struct merge *m, const struct export_options *o, FILE *out);

/* The most that the 4 bytes of a block's size should say: a browser has it in
 * memory. */
#define HTML_BLOCK_MAX (1u << 30)

#endif
