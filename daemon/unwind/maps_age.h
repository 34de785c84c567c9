/*
 * When a target's maps are read again. Where a pc is in none of them, something
 * was mapped since. Where a library was replaced by another in place nothing
 * tells; so they are read now and then, the more rarely the fewer samples there
 * are of which that could be true: each time takes three processes 30 system
 * calls, and of a hundred processes that wake once a second it was a third of
 * what the broker and unwind took.
 */
#ifndef DAEMON_UNWIND_MAPS_AGE_H
#define DAEMON_UNWIND_MAPS_AGE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* A pc in none of them: not at every sample. */
#define MAPS_UNKNOWN_NS (200 * NS_PER_MS)
/* So often where so many samples were taken since, */
#define MAPS_EVERY_NS (5 * NS_PER_SEC)
#define MAPS_SAMPLES  64
/* and so often where there were fewer. */
#define MAPS_SELDOM_NS (20 * NS_PER_SEC)

/* Times are those of ticks. All 0: they were never read. */
struct maps_age {
	uint64_t read_ns;
	uint64_t samples; /* since then */
};

/* They are read now. */
void maps_age_begin(struct maps_age *a, uint64_t now_ns);

/* A sample: are they to be read before it is unwound? */
must_check bool maps_age_sample(struct maps_age *a, uint64_t now_ns);

/* Its pc is in none of them: are they to be read once more? */
must_check bool maps_age_unknown(const struct maps_age *a, uint64_t now_ns);

#endif
