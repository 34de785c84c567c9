/*
 * What differs between two profiles: for each function and each stack the time
 * on both sides of a merge. Used by sentry-profctl compare.
 *
 * The merge has chunks of side 0 ("A") and side 1 ("B"). It is finished, not
 * ordered, and by address.
 *
 * Functions are the same if their names and their modules are. Modules are the
 * same if they have the same build-id (image's debug_id) or the same file name;
 * directories and addresses do not matter. A function without a name is
 * called by its module and the offset of its address in that, "app+0x1230",
 * where both sides have the same build of the module. In two different builds
 * such offsets have nothing to do with each other: there all functions without
 * names are one, "[app]".
 *
 * Both sides have their own length, so times are normalised: a share is the
 * part of all time of its side that is in the merge (its filters and states).
 */
#ifndef PROTO_EXPORT_COMPARE_H
#define PROTO_EXPORT_COMPARE_H

#include <stdint.h>
#include <stdio.h>

#include "lib/base/util.h"
#include "proto/export/merge.h"

#define COMPARE_SIDES 2

struct compare_function {
	const char *name, *package; /* the merge's; package may be NULL */
	uint64_t self_ns[COMPARE_SIDES];
};

/* A stack: its functions from the root down to this one. */
struct compare_node {
	uint32_t parent;   /* PROFILE_NONE: none */
	uint32_t function; /* index */
	uint64_t self_ns[COMPARE_SIDES];
};

struct compare {
	struct compare_function *functions;
	size_t n_functions;
	/* Parents stand before their children. */
	struct compare_node *nodes;
	size_t n_nodes;
	uint64_t total_ns[COMPARE_SIDES];
	/* From the first sample to the last one. */
	uint64_t lasts_ns[COMPARE_SIDES];
	const char *names[COMPARE_SIDES]; /* for a person; the caller's */
};

/*
 * Names the frames of m by the rule above (name and package; a package is the
 * first path of its module), so that m can be written as a page, too, and adds
 * up. Bars get start times, each thread's end to end. m has to outlive c.
 * Returns 0 or -ENOMEM; compare_fini is due in both cases.
 */
must_check int compare_init(struct compare *c, struct merge *m,
			    const char *const names[COMPARE_SIDES]);
/* Takes zeros. */
void compare_fini(struct compare *c);

/* Between 0 and 1; 0 if the side has no time at all. */
double compare_share(const struct compare *c, unsigned int side, uint64_t ns);

/*
 * Collapsed stacks with the counts of A and of B, as flamegraph.pl reads them:
 * "root;...;leaf A B". Counts are nanoseconds of each second of the side. Names
 * are as in export_folded. Flushes out. Returns 0, -ENOMEM or -EIO.
 * Source: Brendan Gregg's FlameGraph, difffolded.pl.
 */
must_check int compare_write_folded(const struct compare *c, FILE *out);

#endif
