/*
 * Asks the daemon that runs, over its socket (lib/client/protocol.h): for
 * sentry-profctl. What goes wrong with the connection is told here, in a line
 * that says what to do.
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
	const char *path; /* of the socket; the caller's */
	bool is_quiet;
};

/*
 * Where the socket is: given, or what the environment says, or the default.
 */
const char *control_client_path(const char *given);

/*
 * Connects, and says hello. Returns 0, or -errno and has printed a line;
 * is_quiet: it prints none, here and later. A daemon that does not answer for
 * a minute is stuck: -EAGAIN, here and later.
 */
must_check int control_client_open(const char *path, bool is_quiet, struct control_client *ret);
/*
 * control_client_open() that prints nothing; a daemon that does not answer for so many
 * seconds is stuck.
 */
must_check int control_client_open_briefly(const char *path, unsigned int seconds,
					   struct control_client *ret);
void control_client_close(struct control_client *a);

/*
 * The daemon's pid, as our pid namespace has it: it is the kernel's word, the
 * one in its status is of its own namespace. 0: it has none here.
 */
int32_t control_client_pid(const struct control_client *a);

/*
 * One request. name: NULL for none. Returns 0 and the daemon's answer, whatever
 * it says; *ret_fd is what came with it (the caller's), or -1. Or -errno, and
 * has printed a line: the connection is good for nothing then.
 */
must_check int control_client_request(struct control_client *a, enum protocol_type type,
				      int32_t pid, const char *name, struct protocol_answer *ret,
				      int *ret_fd);

/*
 * The bytes that came with an answer: size of them, in the descriptor fd, which
 * stays the caller's. ret is due for buf_fini in any case. Returns 0, -EPROTO
 * (there are none), or the error of buf_read_fd.
 */
must_check int control_client_read(int fd, uint32_t size, struct buf *ret);

/*
 * A command's argument that names a process, or the section [target "NAME"]:
 * *ret_pid is 0, or *ret_name NULL. False after a line on stderr.
 */
bool control_client_parse_target(const char *command, const char *text, int32_t *ret_pid,
				 const char **ret_name);

/* What is said of a process, or a section, where the answer has no text. */
const char *control_client_result_text(enum protocol_result result);

#endif
