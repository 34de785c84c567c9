/*
 * A connection to the running daemon's socket (lib/client/protocol.h), for sentry-profctl and
 * sentry-profd-metrics. Requests block until the daemon has answered.
 *
 * Unless the connection is quiet, a function that fails logs one line that says what to do.
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
	const char *path; /* of the socket; a string of the caller's that stays */
	bool is_quiet;	  /* log nothing */
};

/*
 * Returns the path of the socket: given, or if that is NULL that of the environment
 * (PROTOCOL_SOCKET_ENV), or the default.
 */
const char *control_client_path(const char *given);

/*
 * Connects and says hello. Returns 0, or -errno. This call and later requests return -EAGAIN
 * if the daemon has not answered for a minute.
 */
must_check int control_client_open(const char *path, bool is_quiet, struct control_client *ret);
/* As control_client_open(), quiet, with another number of seconds to wait for an answer. */
must_check int control_client_open_briefly(const char *path, unsigned int seconds,
					   struct control_client *ret);
void control_client_close(struct control_client *a);

/*
 * Returns the daemon's pid in this process's pid namespace, from the kernel; 0: it has none
 * there. The pid in the daemon's status is that of its own namespace.
 */
int32_t control_client_pid(const struct control_client *a);

/*
 * Sends one request, about process pid or the section name (NULL: none), and waits for the
 * answer. Returns 0 with the answer, which can be a refusal, and in *ret_fd the descriptor
 * that came with it, which the caller owns, or -1. Or returns -errno: the caller must close
 * the connection then.
 */
must_check int control_client_request(struct control_client *a, enum protocol_type type,
				      int32_t pid, const char *name, struct protocol_answer *ret,
				      int *ret_fd);

/*
 * Reads the size bytes that came with an answer in the descriptor fd, which the caller keeps.
 * Returns 0, -EPROTO if none came, or the error of buf_read_fd(). The caller calls buf_fini(ret)
 * in any case.
 */
must_check int control_client_read(int fd, uint32_t size, struct buf *ret);

/*
 * Parses the argument of a command that names a process or a section [target "NAME"].
 * Sets *ret_pid, or *ret_name and *ret_pid = 0. Logs an error and returns false if the text
 * is neither.
 */
bool control_client_parse_target(const char *command, const char *text, int32_t *ret_pid,
				 const char **ret_name);

/*
 * Returns a text for a result, for use after the name of a process or a section, or alone. The
 * text is a literal.
 */
const char *control_client_result_text(enum protocol_result result);

#endif
