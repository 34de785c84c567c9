/*
 * The connection of libsentry_profd to the daemon: connects, reconnects, sends requests and
 * receives answers (lib/client/protocol.h). All functions but connection_wait() return without
 * waiting.
 *
 * Only one thread of the process works on the connection at a time: the one that has entered the
 * state (state_enter() of lib/client/state.h). Enter the state before every call, except of
 * connection_forget_path(), connection_check_if_due() and connection_wait().
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
 * Makes a further connection to the daemon's socket, beside that of the library. Returns its
 * descriptor, non-blocking and close-on-exec, which the caller closes. Returns -ENOTCONN if no path
 * is set, -EAGAIN if the daemon has many connections to accept, or another error of socket(2),
 * fcntl(2) or connect(2).
 */
int connection_dial(void);

/*
 * Connects now, even if the next attempt is not due yet. Returns 0, also if connected already; an
 * error of connection_dial() or fstat(2); or -ECONNREFUSED if PROTOCOL_HELLO could not be sent.
 */
int connection_open(struct state *s);

/*
 * Does what is due on the connection: connects, receives messages, sends the last start or stop,
 * and announces whether root spans are open. This is the work function of state_do_work() and
 * state_leave().
 */
void connection_work(struct state *s);

/*
 * If the time state.check_ns has come, calls state_do_work() with connection_work(), because the
 * daemon may have started, answered or ended. Otherwise makes no system call.
 */
void connection_check_if_due(struct state *s);

/*
 * Gets the id that the daemon, in another pid namespace, sees for thread tid of this process
 * (PROTOCOL_THREAD). The first call sends the request; later calls receive the answers that have
 * arrived. After the answer the id is in state_thread_slot(). is_new: the thread makes its first
 * call. Then the request is sent in any case, because tid may have belonged to an ended thread.
 */
void connection_request_thread_id(struct state *s, uint32_t tid, bool is_new);

/*
 * Waits until the socket is readable or closed by the daemon. Returns 0, also if a signal handler
 * has run; -ETIMEDOUT after timeout_ms; or -ENOTCONN if there is no connection.
 */
int connection_wait(struct state *s, int timeout_ms);

#endif
