/*
 * The connection of libsentry_profd to the daemon: connects, reconnects, sends requests and
 * receives answers (lib/client/protocol.h). All functions but connection_wait() return without
 * waiting.
 *
 * Only one thread of the process works on the connection at a time: the thread that has entered the
 * state (state_enter() of lib/client/state.h). The caller of a function here must have entered the
 * state. Exceptions: connection_forget_path(), connection_check_if_due() and connection_wait().
 */
#ifndef LIB_CLIENT_CONNECTION_H
#define LIB_CLIENT_CONNECTION_H

#include "lib/client/state.h"

/*
 * Sets the path of the daemon's socket, which is copied. NULL or "": the path of the environment
 * variable PROTOCOL_SOCKET_ENV, or else PROTOCOL_SOCKET. An open connection stays; the next one
 * uses the path. Returns 0 or -ENAMETOOLONG.
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
 * Does what is due on the connection: connects, receives messages, sends the last start or stop
 * that the program requested (once on each connection), and announces whether root spans are open.
 * Pass this function to state_do_work() and state_leave() as their argument work.
 */
void connection_work(struct state *s);

/*
 * Calls state_do_work() with connection_work() if the time s->check_ns has come, because the daemon
 * may have started, answered or ended. Before that time makes no system call.
 */
void connection_check_if_due(struct state *s);

/*
 * Gets the id by which the daemon knows thread tid of this process (PROTOCOL_THREAD). Call this if
 * the daemon is in another pid namespace, where the ids differ. The first call for a thread sends
 * the request; later calls receive the answers that have arrived. The slot of the thread
 * (state_thread_slot()) has the tid in its upper half and the id in its lower half, 0 before the
 * answer. is_new: the thread has not called the library before. The function then sends the request
 * even if the slot has this tid, which may be that of an ended thread. Returns false if the request
 * is not sent: there is no connection, or the socket is full.
 */
bool connection_request_thread_id(struct state *s, uint32_t tid, bool is_new);

/*
 * Waits until the socket is readable or closed by the daemon. timeout_ms is that of poll(2).
 * Returns 0, also if a signal handler has run; -ETIMEDOUT after timeout_ms; -ENOTCONN if there is
 * no connection; or another error of poll(2).
 */
int connection_wait(struct state *s, int timeout_ms);

#endif
