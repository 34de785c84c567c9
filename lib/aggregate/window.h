/*
 * The window of time that a chunk covers: when it begins, which ticks are known, when the chunk is
 * due, and when it ends. The open chunk (lib/aggregate/open_chunk.h) has a window, which the next
 * chunk takes over. All times are those of ticks: CLOCK_MONOTONIC, in ns.
 *
 * The settled tick is the last tick up to which all samples have come. It lags behind the newest
 * tick while a thread takes long to stop for its sample.
 *
 * Chunks follow each other without a hole, with one exception, the gap: if no tick came for longer
 * than WINDOW_GAP_NS (the daemon or the machine was stopped), the state of the threads is unknown.
 * Then the chunk ends at the last tick before the gap, and the next chunk begins at the first tick
 * after the gap. The time between is in neither chunk.
 */
#ifndef LIB_AGGREGATE_WINDOW_H
#define LIB_AGGREGATE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* The longest chunk that may be configured. Sentry's server accepts 66 s. */
#define WINDOW_MAX_US (60 * UINT64_C(1000000))

/*
 * A longer time without a tick is a gap. A shorter time without a tick is part of the chunk, and
 * can make the chunk longer by that time. So this limit is below the 6 s by which the server's 66 s
 * exceed WINDOW_MAX_US.
 */
#define WINDOW_GAP_NS (5 * NS_PER_SEC)

/*
 * The most by which the end of a chunk lags behind the newest tick. A thread in uninterruptible
 * sleep does not stop until its sleep ends, and so holds the settled tick back. After this time the
 * chunk is closed without the thread's sample. When the sample comes, it is added at the beginning
 * of the chunk that is open then.
 */
#define WINDOW_LAG_NS (5 * NS_PER_SEC)

/*
 * The number of ticks that are known: the last 10 s at 101 Hz. They are needed to find the tick
 * before a late sample. If a sample comes later still, the thread's previous run or wait has no
 * sample at its last tick. No time is lost by that, because a sample lasts until the next one.
 */
#define WINDOW_TICKS 1024

struct window {
	uint64_t chunk_ns;		 /* the length that a chunk should have */
	bool started;			 /* false until window_note(): the times below are 0 */
	uint64_t start_ns;		 /* beginning of the chunk */
	uint64_t newest_ns;		 /* the latest time of a record */
	uint64_t settled_ns;		 /* the settled tick */
	uint64_t gap_from_ns, gap_to_ns; /* 0, 0: no gap */
	uint64_t ticks[WINDOW_TICKS];	 /* times of the last ticks, a circular buffer */
	uint64_t n_ticks;		 /* ticks added so far, also those not in the buffer */
};

/* Initialises a window that has not started. */
void window_init(struct window *p, uint64_t chunk_ns);

/*
 * Call it with the time of each record of a thread. The first call starts the window at time_ns.
 * Later calls advance newest_ns, and find gaps. A window has one gap: a second gap extends the
 * first one, so that the time between the two counts as gap, too.
 */
void window_note(struct window *p, uint64_t time_ns);

/*
 * Adds a tick, and notes its time as window_note() does. settled_ns is the time of the settled
 * tick. elapsed_ticks is the number of ticks since the last call, this one included (0 counts as
 * 1). If it is above 1, capture has skipped ticks: these are added at equal distances, except in a
 * gap. A tick that is not later than the last one is not added.
 */
void window_tick(struct window *p, uint64_t time_ns, uint64_t settled_ns, uint64_t elapsed_ticks);

/* Returns the time of the last known tick before time_ns; 0: none is known. */
uint64_t window_tick_before(const struct window *p, uint64_t time_ns);

/*
 * Returns the time of the first known tick between after_ns and before_ns, both excluded; 0: none.
 * The search goes back from the newest tick, so its cost grows with the number of ticks later than
 * after_ns.
 */
uint64_t window_tick_after(const struct window *p, uint64_t after_ns, uint64_t before_ns);

/* Returns to_ns - from_ns without the part in the gap; 0 if from_ns is later. */
uint64_t window_between(const struct window *p, uint64_t from_ns, uint64_t to_ns);

/*
 * Returns the time up to which a chunk may be closed: the settled tick, or the newest tick less
 * WINDOW_LAG_NS if that is later.
 */
uint64_t window_closable(const struct window *p);

/*
 * Returns true if window_closable() has reached the length of the chunk (chunk_ns), or the end of a
 * gap.
 */
bool window_due(const struct window *p);

/*
 * Chooses the end of a chunk that the caller wants to close at end_ns, and the beginning of the
 * next chunk. Usually both are end_ns. They are moved by these rules, in this order:
 * - If end_ns is more than WINDOW_LAG_NS before the newest tick, both are the newest tick less
 *   WINDOW_LAG_NS.
 * - If this time is before the beginning of the chunk, both are the beginning.
 * - If a gap begins before this time, the chunk ends where the gap begins, and the next chunk
 *   begins where the gap ends.
 * - If the chunk would be longer than chunk_ns + WINDOW_LAG_NS, because the settled tick has
 *   advanced far at once, both are the beginning plus chunk_ns. Later samples belong to the next
 *   chunk.
 */
void window_end(const struct window *p, uint64_t end_ns, uint64_t *ret_end_ns,
		uint64_t *ret_next_ns);

/*
 * Begins the next chunk at start_ns. Forgets the gap unless start_ns is before its end. The ticks
 * stay known.
 */
void window_restart(struct window *p, uint64_t start_ns);

#endif
