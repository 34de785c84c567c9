/*
 * The command that sentry-profd starts and profiles: "sentry-profd [option]... -- COMMAND
 * [ARG]...".
 *
 * The child process is forked before the broker changes its credentials, limits, signals,
 * descriptors or environment, so that the command inherits those of sentry-profd's caller. The
 * child waits before execve(2) until capture has attached to it and the broker sends the order to
 * execute the command. If the broker ends before that, for whatever reason, the child reads the end
 * of its socket and exits without having run the command.
 *
 * The command stays in the process group of sentry-profd, so that signals of the terminal reach it
 * without the broker's help. The broker stops when the terminal stops the command, continues with
 * it, and ends when the command has ended.
 */
#ifndef DAEMON_BROKER_DISCOVERY_COMMAND_H
#define DAEMON_BROKER_DISCOVERY_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>

#include "daemon/process/leak_options.h"
#include "lib/base/util.h"

struct options;
struct state;
struct targets;

/* Exit statuses, as those of env(1), timeout(1) and the shell. */
#define COMMAND_NOT_STARTED 125 /* sentry-profd failed before the start */
#define COMMAND_NO_EXEC	    126 /* the file exists and cannot be executed */
#define COMMAND_NOT_FOUND   127

/* Without a command, pid is 0, go_fd and file are -1. */
struct command {
	int32_t pid;
	/* The broker's end of the child's socket; -1: the child has its order, or ends. */
	int go_fd;
	/*
	 * file: a descriptor of the program (of a script: of its interpreter) that the child will
	 * execute. -1: the program cannot be read, or the child has its order. leak_options: from
	 * the child's environment.
	 */
	int file;
	struct leak_options leak_options;
	bool is_privileged; /* execve(2) would change the user, the group or the capabilities */
	bool has_ended;
	int status; /* as of wait(2), once the command has ended */
};

/*
 * Forks the child. The child changes to user (NULL: keeps the caller's user) and looks for
 * argv[0] along PATH. argv stays in use. If descriptors or processes are short, prints a line
 * and exits with COMMAND_NOT_STARTED.
 */
void command_fork(struct command *c, char **argv, const char *user);

/*
 * Waits until the child has changed its user and found the file. If the child failed, it has
 * printed a line: this function exits with the child's exit status.
 */
void command_wait_ready(struct command *c);

/*
 * Leaves standard input and output to the command, so that a reader of the output sees the end
 * when the command closes it. From here on the broker reads /dev/null and prints to standard
 * error.
 */
void command_leave_streams(void);

/*
 * Logs a line if the kernel will ignore a set-user-ID bit, a set-group-ID bit or the file
 * capabilities of the command (or, with --children, of programs that its children execute).
 */
void command_warn(const struct command *c, const struct options *o);

/* Returns true while the child waits for the order to execute the command. */
static inline bool command_is_held(const struct command *c)
{
	return c->go_fd >= 0;
}

/*
 * Orders the child to execute the command, once capture has attached to it. While the server of the
 * command's DSN takes no profiles (children/server_limit.h), capture does not attach: then the
 * command is executed at once, and profiled later. If capture cannot attach, the child exits with
 * COMMAND_NOT_STARTED. Called at every turn.
 */
void command_check(struct command *c, struct targets *ts);

/* Closes the child's socket: a child that still waits exits with COMMAND_NOT_STARTED. */
void command_cancel(struct command *c);

/*
 * Handles a signal that the broker has received. Returns true if the signal is for the command
 * alone: the command runs, and either the terminal has sent the signal to the command as well, or
 * this function has forwarded it. The caller then ignores the signal.
 */
must_check bool command_handle_signal(const struct command *c, const struct signalfd_siginfo *info);

/*
 * To be called after a SIGCHLD: if the terminal has stopped or continued the command, sets or
 * clears s->suspend_requested.
 */
void command_check_stopped(const struct command *c, struct state *s);

/* Records that the command has ended, with this status of wait(2). */
void command_ended(struct command *c, int status);

/* Returns the exit status of a command that has ended: its own, or 128 + n after signal n. */
int command_exit_status(const struct command *c);

/*
 * Waits for the end of the command and returns command_exit_status(). For a broker that could
 * not start and has no event loop. If the child still waits, it exits without running the
 * command.
 */
int command_abandon(struct command *c);

#endif
