/*
 * Compares two profiles, A and B: finds the time of each function and each stack in both.
 * Used by `sentry-profctl compare`.
 *
 * The input is a finished merge (merge.h) made with neither by_function nor is_ordered. The chunks
 * of A are on side 0 of the merge, those of B on side 1.
 *
 * Two functions are the same if they have the same name in the same module. A suffix that the
 * compiler appends to a part or a copy of a function (".cold", " [clone .part.0]") does not count.
 *
 * Two modules are the same if one of these holds; directories and addresses do not matter:
 * - They are the main programs of their sides. The main program of a side is that of its processes
 *   (merge_main_program()). If these have different ones, the side has none.
 * - They have the same build-id (debug_id of the image).
 * - They have the same file name, without a version after ".so" ("libz.so.1" is "libz.so").
 * - The caller of compare_init() names them as a pair.
 *
 * Functions without a name: if both sides have the same build of the module, each is named by
 * module and offset, "app+0x1230". Otherwise offsets cannot be compared, and all functions without
 * a name in the module count as one function, "[app]".
 *
 * A and B may have different durations, so times are compared as shares: the share of a
 * function is its part of the total time of its side in the merge.
 */
#ifndef PROTO_EXPORT_COMPARE_H
#define PROTO_EXPORT_COMPARE_H

#include <stdint.h>
#include <stdio.h>

#include "lib/base/util.h"
#include "proto/export/merge.h"

#define COMPARE_SIDES 2

struct compare_function {
	const char *name, *package; /* strings of the merge; package (the module) may be NULL */
	uint64_t self_ns[COMPARE_SIDES]; /* by side: thread time with this function as the leaf */
};

/* A node of the trie of stacks: the path from the root to this function. */
struct compare_node {
	uint32_t parent;		 /* PROFILE_NONE: this is a root */
	uint32_t function;		 /* index in compare.functions */
	uint64_t self_ns[COMPARE_SIDES]; /* by side: thread time with exactly this stack */
};

struct compare {
	struct compare_function *functions;
	size_t n_functions;
	struct compare_node *nodes; /* parents come before their children */
	size_t n_nodes;
	uint64_t total_ns[COMPARE_SIDES];    /* thread time: the sum over all bars */
	uint64_t duration_ns[COMPARE_SIDES]; /* first to last sample, cut to merge_options' range */
	const char *names[COMPARE_SIDES];    /* of the inputs; owned by the caller */
};

/*
 * The file names, without directory, of two modules that count as the same. On both sides a module
 * with the name from is treated as if its name were to.
 */
struct compare_pair {
	const char *from, *to;
};

/*
 * Compares the sides of m. pairs: n_pairs modules that have different names on the two sides; not
 * needed after the call. m and the names have to outlive c. Returns 0 or -ENOMEM. Call
 * compare_fini() in both cases.
 *
 * Changes m so that export_html() can write m:
 * - Frames of one function get the same name and package. If the module has several paths, the
 *   package is the one that was added to m first.
 * - Bars get start times: each bar of a thread begins where the one before ends.
 */
must_check int compare_init(struct compare *c, struct merge *m,
			    const char *const names[COMPARE_SIDES],
			    const struct compare_pair *pairs, size_t n_pairs);

/* Safe on a zero-initialised struct. */
void compare_fini(struct compare *c);

/* Returns the share of ns in the time of a side: 0 to 1; 0 if the side has no time. */
double compare_share(const struct compare *c, unsigned int side, uint64_t ns);

/*
 * Writes collapsed stacks with two counts, as flamegraph.pl reads them: "root;...;leaf A B".
 * A and B are the shares of the stack (compare_share()) on the two sides, times 1e9 and
 * rounded. Names are as in export_folded(). Flushes out. Returns 0, -ENOMEM, or the
 * negative errno of writing (-EIO if errno is not set).
 * Source: Brendan Gregg's FlameGraph, difffolded.pl.
 */
must_check int compare_write_folded(const struct compare *c, FILE *out);

#endif
