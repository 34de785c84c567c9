/*
 * What one reading of /proc remembers of processes for the next one, where
 * nobody tells of changes: a few bytes each, as long as they live.
 */
#ifndef DAEMON_BROKER_DISCOVERY_MARKS_H
#define DAEMON_BROKER_DISCOVERY_MARKS_H

#include <stdint.h>

#include "lib/base/table.h"

struct marks {
	struct table seen, seeing; /* by the last reading, and by this one */
};

enum mark_change {
	MARK_SAME,
	MARK_NEW,     /* it was not there */
	MARK_PROGRAM, /* another program, or process, than was there */
	MARK_USER,    /* the same, of another user */
};

void marks_init(struct marks *m);
/* Takes one of zeros, too. */
void marks_fini(struct marks *m);

/* No user is asked for: then nobody has changed his. */
#define MARKS_NO_USER UINT32_MAX

/*
 * A process as it is now: mark is struct process_identity's. Without memory it is
 * new each time.
 */
enum mark_change marks_compare(struct marks *m, int32_t pid, uint32_t mark, uint32_t uid);

/* The reading has ended: who was not in it is forgotten. */
void marks_turn(struct marks *m);

/* All are new to the next reading. */
void marks_forget(struct marks *m);

#endif
