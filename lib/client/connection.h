/*
 * The connection to the daemon: found, lost and found again, what is said on it
 * and what comes. Everything is done without waiting, by whoever has entered
 * the state (lib/client/state.h).
 */
#ifndef LIB_CLIENT_CONNECTION_H
#define LIB_CLIENT_CONNECTION_H

#include "lib/client/state.h"

/* NULL: the environment's, or the usual one. Returns 0 or -ENAMETOOLONG. */
int connection_choose(const char *path);
/* No more connections until one is chosen. */
void connection_forget(void);

/* Opens it now, whenever it would be due. Returns 0 or -errno. */
int connection_open(struct state *s);

/*
 * Brings it all together: connects if that is due, takes what has come, tells
 * what is open and what was asked for. A state_settle function.
 */
void connection_settle(struct state *s);

/*
 * That, if it is time: a daemon may have come, answered, or gone. No system
 * call otherwise.
 */
void connection_look_if_due(struct state *s);

/*
 * Asks for the daemon's number of a thread of ours, or takes the answer.
 * is_new: the number may have been another thread's before.
 */
void connection_ask_thread(struct state *s, uint32_t tid, bool is_new);

/* Waits for what may come. Returns 0, -ETIMEDOUT, -ENOTCONN. */
int connection_wait(struct state *s, int timeout_ms);

#endif
