/*
 * The command that sentry-profd starts and profiles: "sentry-profd [option]...
 * -- COMMAND [ARG]...".
 *
 * The child is forked before the broker changes its credentials, limits,
 * signals, descriptors or environment, so that the command has the caller's. It
 * waits before execve(2) until capture has attached to it. If the broker ends
 * before that, by whatever signal, the child sees the end of its socket and
 * exits: the command has not run.
 *
 * The command stays in the process group of sentry-profd: what a terminal sends
 * to its foreground group reaches the command without the broker's help. The
 * broker stops when the command is stopped from a terminal, goes on with it,
 * and ends when the command has ended.
 */
#ifndef DAEMON_BROKER_COMMAND_H
#define DAEMON_BROKER_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>

#include "lib/base/util.h"

struct options;
struct state;
struct targets;

/* Exit statuses as those of env(1), timeout(1) and the shell. */
#define COMMAND_NOT_STARTED 125 /* sentry-profd failed before the start */
#define COMMAND_NO_EXEC	    126 /* the file is there and cannot be executed */
#define COMMAND_NOT_FOUND   127

struct command {
	int32_t pid;	    /* 0: there is no command */
	int go_fd;	    /* -1: the child was told to execute it, or not to */
	bool is_privileged; /* execve(2) would change its user, group or
			       capabilities */
	bool has_ended;
	int status; /* of wait(2), once it has ended */
};

/*
 * Forks the child, which becomes this user first (NULL: keeps the caller's user)
 * and looks for argv[0] along PATH. Prints a line and exits if no descriptor or
 * process is left for the child.
 */
void command_fork(struct command *c, char **argv, const char *user);

/*
 * Waits until the child has become the user and found the file. Where it could
 * not, it has printed a line: exits with its status.
 */
void command_wait_ready(struct command *c);

/*
 * The broker's standard input and output are the command's alone from here on:
 * a reader of the output sees its end when the command closes it. What the
 * broker prints goes to standard error.
 */
void command_leave_streams(void);

/*
 * Says in a line that the kernel will ignore a set-user-ID bit, a set-group-ID
 * bit or the capabilities of a file, where that is so.
 */
void command_warn(const struct command *c, const struct options *o);

/* The child waits to be told to execute the command. */
static inline bool command_is_held(const struct command *c)
{
	return c->go_fd >= 0;
}

/*
 * At every turn: tells a child that capture has attached to to execute the
 * command, and one that cannot be attached to to exit with
 * COMMAND_NOT_STARTED.
 */
void command_check(struct command *c, struct targets *ts);

/* The child, if it is held, exits with COMMAND_NOT_STARTED. */
void command_give_up(struct command *c);

/*
 * A signal to the broker. True if it is no reason for the broker to do
 * anything: the command runs, and either the terminal has sent the signal to
 * it as well, or it was handed on to the command.
 */
must_check bool command_takes(const struct command *c, const struct signalfd_siginfo *info);

/* After a SIGCHLD: follows the command into a stop of the terminal's. */
void command_look(const struct command *c, struct state *s);

/* The command has ended, with this status of wait(2). */
void command_ended(struct command *c, int status);

/* Of one that has ended: its exit status, 128 + n after signal n. */
int command_exit_status(const struct command *c);
/* Waits for the end without the broker's loop, in a broker that could not start. */
int command_abandon(struct command *c);

#endif
