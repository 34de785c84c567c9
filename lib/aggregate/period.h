/*
 * The period of time that a chunk covers: where it begins, which ticks are known, when the chunk is
 * due, and where it ends. All times are monotonic times of ticks in ns.
 *
 * Chunks follow each other without a hole, with one exception. If no tick came for longer than
 * PERIOD_GAP_NS (the daemon or the machine was stopped), the state of the threads is unknown: the
 * chunk ends at the last tick before the gap, the next one begins at the first tick after it, and
 * the time between is in neither.
 */
#ifndef LIB_AGGREGATE_PERIOD_H
#define LIB_AGGREGATE_PERIOD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* The longest chunk that may be configured. The server accepts 66 s. */
#define PERIOD_CHUNK_MAX_US (60 * UINT64_C(1000000))

/*
 * A longer time without a tick is a gap. Shorter times are part of the chunk, so
 * this is less than the difference between the longest chunk and 66 s.
 */
#define PERIOD_GAP_NS (5 * NS_PER_SEC)

/*
 * How far the settled tick may lag behind the newest one: a thread in
 * uninterruptible sleep keeps it back for as long as that sleep takes. After
 * this time the chunk no longer waits for the thread; the thread's sample then
 * counts from the beginning of the chunk that is open when it comes.
 */
#define PERIOD_LAG_NS (5 * NS_PER_SEC)

/*
 * Ticks that are remembered to find the one before a late sample: 10 s at 101
 * Hz. A thread whose sample comes later gets no last sample of its run. That
 * loses no time, because a sample lasts until the next one.
 */
#define PERIOD_TICKS 1024

struct period {
	uint64_t chunk_ns;
	bool started; /* period_note() has been called; until then the times are 0 */
	uint64_t start_ns;
	uint64_t newest_ns;
	uint64_t settled_ns;
	uint64_t gap_from_ns, gap_to_ns; /* 0, 0: no gap */
	uint64_t ticks[PERIOD_TICKS];	 /* the last ones, a ring */
	uint64_t n_ticks;		 /* total so far */
};

void period_init(struct period *s, uint64_t chunk_ns);

/* Takes the time of a record. */
void period_note(struct period *s, uint64_t time_ns);

/*
 * Takes a tick, with record_tick.due, its distance from the last tick (0 counts
 * as 1). Skipped ticks between the two are added at equal distances, except in a
 * gap.
 */
void period_tick(struct period *s, uint64_t time_ns, uint64_t settled_ns, uint64_t elapsed_ticks);

/* Returns the last known tick before time_ns, or 0. */
uint64_t period_tick_before(const struct period *s, uint64_t time_ns);

/*
 * Returns the first known tick that is later than after_ns and before before_ns,
 * or 0. Walks back from the newest tick, so it is fast where few are later.
 */
uint64_t period_tick_after(const struct period *s, uint64_t after_ns, uint64_t before_ns);

/* Returns the time between two times in ns, without the gap. */
uint64_t period_between(const struct period *s, uint64_t from_ns, uint64_t to_ns);

/*
 * Returns the time up to which a chunk may be closed: the settled tick, or the
 * newest tick less PERIOD_LAG_NS if that is later.
 */
uint64_t period_closable(const struct period *s);

/* Returns true if the chunk has its length, or has a gap behind it. */
bool period_due(const struct period *s);

/*
 * Returns the end of a chunk that the caller closes at end_ns, and the beginning
 * of the next one. Both are end_ns, except:
 * - end_ns lags by more than PERIOD_LAG_NS: the newest tick less that time;
 * - there is a gap before end_ns: the two ends of the gap;
 * - the chunk would be more than PERIOD_LAG_NS longer than its length, because
 *   the settled tick has advanced far at once: the chunk's length. The samples
 *   after it belong to the next chunk.
 */
void period_end(const struct period *s, uint64_t end_ns, uint64_t *ret_end_ns,
		uint64_t *ret_next_ns);

/* Begins the next chunk at start_ns. */
void period_restart(struct period *s, uint64_t start_ns);

#endif
