/*
 * A connection to the running daemon's socket (lib/client/protocol.h), for sentry-profctl and
 * sentry-profd-metrics. Requests block until the daemon has answered, or until a timeout.
 *
 * If control_client_open(), _open_briefly(), _request() or _release() returns -errno, it has logged
 * one line that says what the user can do, unless the connection is quiet. The other functions log
 * nothing, unless they say so. A refusal by the daemon is no error: the caller reports it
 * (control_client_result_text()).
 */
#ifndef DAEMON_COMMON_CONTROL_CLIENT_H
#define DAEMON_COMMON_CONTROL_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/util.h"
#include "lib/client/protocol.h"

struct control_client {
	int fd;
	const char *path;      /* of the socket; not copied */
	bool is_quiet;	       /* log nothing */
	unsigned int answer_s; /* timeout of an answer, in seconds */
};

/*
 * Returns the path of the socket: given, or, if given is NULL, the value of the environment
 * variable PROTOCOL_SOCKET_ENV. If that path is "", or the variable is not set, returns the default
 * PROTOCOL_SOCKET.
 */
const char *control_client_path(const char *given);

/*
 * Connects, and sends PROTOCOL_HELLO. path must outlive the connection. Returns 0 or -errno. After
 * 0 the caller calls control_client_close() at the end; after an error there is nothing to close.
 * This function and later requests on the connection return -EAGAIN if the daemon does not answer
 * within a minute, -EPIPE if the daemon has closed the connection, and -EPROTO if its answer is
 * malformed.
 */
must_check int control_client_open(const char *path, bool is_quiet, struct control_client *ret);
/* As control_client_open(), with a timeout of this number of seconds for each answer. */
must_check int control_client_open_briefly(const char *path, unsigned int seconds, bool is_quiet,
					   struct control_client *ret);
void control_client_close(struct control_client *c);

/*
 * Returns the daemon's pid in the pid namespace of this process, as the kernel reports it; 0 if the
 * daemon has no pid there. The pid in the daemon's status is that of the daemon's own namespace.
 */
int32_t control_client_pid(const struct control_client *c);

/*
 * Sends one request and waits for the answer. The request is about process pid, as the daemon's pid
 * namespace numbers it (0: none), or the section of this name (NULL: none); lib/client/protocol.h
 * says what each type needs. Returns 0 with the answer, which can be a refusal. *ret_fd is
 * then the descriptor that came with the answer, which the caller owns; -1: none came. Returns
 * -EINVAL, without a log line, if name has PROTOCOL_NAME_SIZE bytes or more. After any other -errno
 * the caller must close the connection.
 */
must_check int control_client_request(struct control_client *c, enum protocol_type type,
				      int32_t pid, const char *name, struct protocol_answer *ret,
				      int *ret_fd);

/*
 * As control_client_request(), with the same errors, for PROTOCOL_RELEASE: the daemon does not
 * trace process pid for this number of seconds after its answer; 0: for PROTOCOL_RELEASE_S. The
 * answer comes when the daemon traces no thread of the process any more, or when the daemon
 * refuses, or after 25 s (PROTOCOL_TIMED_OUT).
 */
must_check int control_client_release(struct control_client *c, int32_t pid, uint32_t seconds,
				      struct protocol_answer *ret, int *ret_fd);

/*
 * Reads the bytes that came with an answer. fd: the answer's descriptor, which the caller keeps;
 * size: fd_bytes of the answer. Initialises *ret; the caller calls buf_fini(ret) in any case.
 * Returns 0, -EPROTO if fd is -1 or size is 0, or the error of buf_read_fd().
 */
must_check int control_client_read(int fd, uint32_t size, struct buf *ret);

/*
 * Parses the argument of a command that names a process or a section [target "NAME"]. For a pid,
 * sets *ret_pid, and *ret_name = NULL. For a name, sets *ret_name, which points to text, and
 * *ret_pid = 0. If text is neither, logs a line that begins with command, and returns false.
 */
bool control_client_parse_target(const char *command, const char *text, int32_t *ret_pid,
				 const char **ret_name);

/*
 * Returns a text that says what a result means, such as "is profiled already" or "there is no such
 * process". It can follow the name of a process or a section, or stand alone. The text is a
 * literal.
 */
const char *control_client_result_text(enum protocol_result result);

#endif
