/*
 * A chunk's place in time: where it starts, what is known of the ticks, when
 * it is due and where it ends. Times are monotonic nanoseconds of ticks.
 *
 * Chunks follow each other without a hole, with one exception: where no tick
 * came for longer than SPAN_GAP_NS (the daemon or the machine was stopped),
 * nobody knows what the threads did. There the chunk ends at the last tick
 * before, the next one starts at the first tick after, and the time between is
 * in neither.
 */
#ifndef LIB_AGGREGATE_SPAN_H
#define LIB_AGGREGATE_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* What the server's 66 s leave above the longest chunk. */
#define SPAN_CHUNK_MAX_US (60 * UINT64_C(1000000))

/*
 * The server takes 66 s, a chunk has up to 60: neither a hole in the ticks nor
 * a late end may take more than what is between.
 */
#define SPAN_GAP_NS (5 * NS_PER_SEC)

/*
 * How far the settled tick may lag: a thread in uninterruptible sleep keeps it
 * back for as long as that takes. Beyond this the chunk does not wait; the
 * thread's sample counts from the start of the chunk that is open then.
 */
#define SPAN_LAG_NS (5 * NS_PER_SEC)

/*
 * Ticks that are remembered, to find those before a late sample: 10 s at
 * 101 Hz. A thread that takes longer to stop gets no last sample of its run,
 * which costs no time: a sample lasts until the next one.
 */
#define SPAN_TICKS 1024

struct span {
	uint64_t chunk_ns;
	bool started; /* a time was seen; before that the rest is 0 */
	uint64_t start_ns;
	uint64_t newest_ns;
	uint64_t settled_ns;
	uint64_t gap_from_ns, gap_to_ns; /* 0, 0: none */
	uint64_t ticks[SPAN_TICKS];
	uint64_t n_ticks; /* seen in all */
};

void span_init(struct span *s, uint64_t chunk_ns);

/* Some record of this time came. */
void span_note(struct span *s, uint64_t time_ns);

/*
 * A tick came. It is number due since the last tick that came (record_tick.due;
 * 0 counts as 1). The ticks between the two are added, at equal distances. A
 * gap has none.
 */
void span_tick(struct span *s, uint64_t time_ns, uint64_t settled_ns, uint64_t due);

/* The last known tick before time_ns, or 0. */
uint64_t span_tick_before(const struct span *s, uint64_t time_ns);

/*
 * The first known tick that is later than after_ns and before before_ns, or 0.
 * Quick where few are later.
 */
uint64_t span_tick_after(const struct span *s, uint64_t after_ns, uint64_t before_ns);

/* The nanoseconds from one time to another, without the gap. */
uint64_t span_between(const struct span *s, uint64_t from_ns, uint64_t to_ns);

/* Up to here a chunk may be closed: settled, or as good as. */
uint64_t span_closable(const struct span *s);

/* By its time the chunk ought to be closed. */
bool span_due(const struct span *s);

/*
 * Where a chunk that the caller wants to end at end_ns ends, and where the
 * next one starts. That is end_ns itself, unless:
 * - end_ns lags by more than SPAN_LAG_NS: then at the newest tick less that;
 * - there is a gap before it: then at the gap's ends;
 * - that is more than SPAN_LAG_NS longer than a chunk (the settled tick made a
 *   leap): then after a chunk's length; what follows is the next one's.
 */
void span_end(const struct span *s, uint64_t end_ns, uint64_t *ret_end_ns, uint64_t *ret_next_ns);

/* The next chunk starts here. */
void span_restart(struct span *s, uint64_t start_ns);

#endif
