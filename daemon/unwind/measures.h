/*
 * What a target used while its chunk was open: kept until the chunk is closed,
 * and given to the one that it belongs to by its time.
 */
#ifndef DAEMON_UNWIND_MEASURES_H
#define DAEMON_UNWIND_MEASURES_H

#include <stddef.h>

#include "proto/profile.h"

/* One a second of a chunk that may be late, and of the next. */
#define MEASURES_MAX 128

struct measures {
	struct profile_measure v[MEASURES_MAX]; /* by time */
	size_t n;
	size_t given; /* of these: to the chunk that was closed last */
};

void measures_init(struct measures *m);

/* One too many, or one that is not later than the last, is left out. */
void measures_add(struct measures *m, const struct profile_measure *v);

/*
 * Puts those of the time of its samples into the profile, where they are valid
 * until the next call; what is older belongs to no chunk and is dropped.
 */
void measures_give(struct measures *m, struct profile *ret);

#endif
