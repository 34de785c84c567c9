/*
 * A turn of the broker's event loop: waits for events, then calls each part of the broker in a
 * fixed order, and at the end frees the objects that have ended.
 *
 * The lists of the broker (instances, runs, unwinds, ships, envelopes, clients, recordings) change
 * in two ways only. An object is appended to its list when it is made. An object that has ended is
 * marked, so that no function finds it any more. It is removed and freed at the end of the turn,
 * when no list is being walked.
 */
#ifndef DAEMON_BROKER_TURN_H
#define DAEMON_BROKER_TURN_H

#include <stdint.h>

struct broker;

/* Runs one turn; waits for events for at most timeout_ms. Exits if epoll_wait(2) fails. */
void turn_run_once(struct broker *b, int timeout_ms);
/*
 * Returns the timeout_ms for the next turn_run_once(): the time until deadline_ns (by
 * state_now_ns()), or less if a part of the broker has to check something earlier. Returns 0 if
 * deadline_ns has passed.
 */
int turn_wait_ms(const struct broker *b, uint64_t deadline_ns);

#endif
