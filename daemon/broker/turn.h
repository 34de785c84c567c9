/*
 * A turn of the broker's event loop: waits for events, then lets each part of the broker
 * do what is due, in a fixed order, and at the end frees what has ended.
 *
 * Lists of the broker (instances, targets, unwinds, ships, envelopes, clients) change in
 * two places only. An object is appended when it is made. An object that has ended is
 * marked, so that no function finds it any more, and is freed at the end of the turn,
 * when no list is being walked.
 */
#ifndef DAEMON_BROKER_TURN_H
#define DAEMON_BROKER_TURN_H

#include <stdint.h>

struct broker;

/* Waits for events, up to timeout_ms, and deals with them. */
void turn_run_once(struct broker *b, int timeout_ms);
/*
 * How many milliseconds turn_run_once may wait, if the caller has a deadline by
 * state_now_ns: less where a part looks after something several times a second.
 */
int turn_wait_ms(const struct broker *b, uint64_t deadline_ns);

#endif
