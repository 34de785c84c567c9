/*
 * The connection to the daemon: connects, reconnects, sends requests and receives answers. All
 * functions but connection_wait() return without waiting.
 *
 * A struct state * parameter means that the caller has entered the state (state_enter() of
 * lib/client/state.h), except for connection_check_if_due() and connection_wait(). The caller of
 * connection_set_path() and connection_dial() has entered the state, too.
 */
#ifndef LIB_CLIENT_CONNECTION_H
#define LIB_CLIENT_CONNECTION_H

#include "lib/client/state.h"

/*
 * Sets the path of the daemon's socket, which is copied. NULL or "": the path of the environment
 * variable PROTOCOL_SOCKET_ENV, or else PROTOCOL_SOCKET. Returns 0 or -ENAMETOOLONG.
 */
int connection_set_path(const char *path);
/*
 * Forgets the path: no connection is made before the next connection_set_path(), and the next
 * connection_work() closes the connection.
 */
void connection_forget_path(void);

/*
 * Makes a connection to the daemon's socket, non-blocking and close-on-exec, which the caller owns.
 * Returns the descriptor, -ENOTCONN if no path is set, -EAGAIN if the daemon has many connections
 * to accept, or another -errno.
 */
int connection_dial(void);

/*
 * Connects now, even if the next attempt is not due yet. Returns 0, also if connected already, or
 * -errno.
 */
int connection_open(struct state *s);

/*
 * Does what is due: connects, receives messages, sends the last start or stop, and announces
 * whether root spans are open. Can be passed to state_do_work().
 */
void connection_work(struct state *s);

/*
 * Runs connection_work() by state_do_work() if a check is due: the daemon may have started,
 * answered or ended. Makes no system call otherwise.
 */
void connection_check_if_due(struct state *s);

/*
 * Requests the daemon's id of thread tid of this process (PROTOCOL_THREAD); if the id has been
 * requested before, receives the answers that have arrived. The id is then in state_thread_slot().
 * is_new: the thread calls this function for the first time; tid may have been the id of an earlier
 * thread, so the id is requested again.
 */
void connection_request_thread_id(struct state *s, uint32_t tid, bool is_new);

/* Waits until the socket is readable. Returns 0, -ETIMEDOUT after timeout_ms, or -ENOTCONN. */
int connection_wait(struct state *s, int timeout_ms);

#endif
