/*
 * The format "html": one HTML file, the page, that shows a profile in a browser, from disk and
 * without network. It consists of proto/export/html/page.html with its style and scripts, which the
 * build embeds (html_page.h), and the profile as data.
 *
 * The data are a stream of bytes, compressed by deflate in zlib's format (RFC 1950) and
 * written as base64, so that no text of a profile can be markup. The stream is "SPH2" and
 * then blocks. A block is a letter, the size of its content (4 bytes, little-endian) and the
 * content. proto/export/html/data.js reads the stream, and skips blocks that it does not know.
 *
 * Numbers in a block are LEB128: 7 bits a byte, lowest first; bit 7 is set in all bytes but the
 * last. In the blocks S to T of this list the elements follow each other up to the end of the
 * block. A block refers to strings, processes, frames, nodes and threads by their indices, which
 * count from 0 in the order of the blocks, for each kind separately:
 *
 *   S  strings: of each the length in bytes and the UTF-8. String 0 is "".
 *   P  processes: indices of four strings: profiler_id, platform, release and environment.
 *   M  for each process the index of a string, the path of its main program; left out in a
 *      comparison.
 *   A  for each process the index of a string, its command line; "": unknown. Left out if all are
 *      unknown.
 *   F  frames: indices of three strings: name, module and source file; the line, 0 if unknown;
 *      a byte, 1 if in_app; the address in 8 bytes, little-endian, 0 if unknown.
 *   L  short names (lib/base/short_names.h), for each name of frames whose short form differs:
 *      indices of two strings, the name and its short form. Left out if there is none.
 *   N  nodes of the trie of stacks: the index of the node minus that of its parent, which
 *      comes before it, or 0 for a root; the index of the frame.
 *   T  threads: the index of the process; indices of two strings: id and name.
 *   R  the bars of one thread: the index of the thread; the start of its first bar in
 *      microseconds of Unix time; the number of bars; the durations of all bars in microseconds;
 *      the codes of all bars. A bar starts where the one before ends; a gap in which nothing is
 *      known of the thread is a bar, too. A code is 3 * zigzag(d) + s:
 *        s  the state of the thread: 0 running, 1 ready, 2 waiting; 0 in a gap
 *        d  k minus the k of the bar before (0 before the first bar); k is the node plus 1, or 0
 *           in a gap
 *      zigzag(d) is 2d for d >= 0, else -2d - 1. Example: the first bar is waiting (2) at node 4,
 *      so k = 5, d = 5, and the code is 3 * 10 + 2 = 32.
 *   C  a comparison (compare.h): for A and for B the index of its name and its duration in
 *      microseconds; then for each process a byte, 0 for A, 1 for B. In a comparison each bar
 *      is the sum of a stack's time, and the bars of a thread follow each other without gaps.
 *   W  (empty) merge.lacks_lines is set: by its options the profiler of some chunks did not look
 *      for source lines and inlined functions. Otherwise the block is left out.
 *   E  the end: the number of samples; a byte, 1 if samples have states, else 0; a byte, 1 if some
 *      sample with the state waiting may have been ready (merge.hides_ready), else 0. Data without
 *      this block are incomplete.
 */
#ifndef PROTO_EXPORT_HTML_HTML_H
#define PROTO_EXPORT_HTML_HTML_H

#include <stdio.h>

#include "proto/export/export.h"

/*
 * The most bytes of a block's content, because the browser keeps it in memory. (The 4 bytes of the
 * size would permit more.)
 */
#define HTML_BLOCK_MAX (1u << 30)

/*
 * Writes the page to out and flushes it. Neighbouring bars with the same stack and state
 * become one. Keeps the encoded tables of the merge in memory, and the bars of one thread at a
 * time. Returns 0, -ENOMEM, -E2BIG if a block exceeds HTML_BLOCK_MAX, or the error of the
 * stream (-EIO if errno is not set).
 *
 * m must be a finished merge made with these options (struct merge_options): not by_function;
 * is_ordered; keep_extra, which keeps release, environment and platform. If o->comparison is set, m
 * must be the merge that compare_init() got, which was made without is_ordered.
 */
must_check int export_html(const struct merge *m, const struct export_options *o, FILE *out);

#endif
