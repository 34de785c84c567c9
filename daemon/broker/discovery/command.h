/*
 * The command that sentry-profd starts and profiles: "sentry-profd [option]... -- COMMAND
 * [ARG]...".
 *
 * The broker forks a child, which later executes the command. The broker forks before it changes
 * its own credentials, limits, signals, descriptors or environment, so that the command inherits
 * those of sentry-profd's caller. Before execve(2) the child waits for an order, which the broker
 * sends when capture has attached to the child. If the broker ends before that, for whatever
 * reason, the child reads the end of its socket and exits without having run the command.
 *
 * Order of calls at the start: command_fork(), command_leave_streams(), command_wait_ready(),
 * command_warn().
 *
 * The command stays in the process group of sentry-profd, so that signals of the terminal reach the
 * command without the broker's help. When the terminal stops or continues the command, the broker
 * stops or continues as well. The broker ends when the command has ended.
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

/* The caller sets go_fd and file to -1 and the rest to zeros. Without a command that stays so. */
struct command {
	int32_t pid; /* of the child, which becomes the command */
	/* The broker's end of the child's socket; -1: the child has its order, or ends. */
	int go_fd;
	/*
	 * file: a descriptor of the program (of a script: of its interpreter) that the child will
	 * execute. -1: the program cannot be read, or the child has its order. leak_options: what
	 * the child's environment says of LeakSanitizer.
	 */
	int file;
	struct leak_options leak_options;
	bool is_privileged; /* execve(2) would change the user, the group or the capabilities */
	bool has_ended;
	int status; /* as of wait(2), once the command has ended */
};

/*
 * Forks the child. The child changes to user (NULL: keeps the caller's user) and looks for
 * argv[0] along PATH. Returns in the broker only, with c->pid and c->go_fd set. If descriptors or
 * processes are short, prints a line and exits with COMMAND_NOT_STARTED.
 */
void command_fork(struct command *c, char **argv, const char *user);

/*
 * Waits until the child has changed its user and found the file, and sets file, leak_options and
 * is_privileged. If the child fails, the child prints a line, and this function ends the broker
 * with the child's exit status.
 */
void command_wait_ready(struct command *c);

/*
 * Leaves standard input and output to the command: the broker's standard input becomes /dev/null,
 * and what the broker prints goes to standard error. So a reader of the command's output sees its
 * end when the command closes the output. Logs a line on failure.
 */
void command_leave_streams(void);

/*
 * Logs lines only if the broker lacks CAP_SYS_PTRACE. Then the kernel ignores the set-user-ID bit,
 * set-group-ID bit and file capabilities of a program that a traced process executes. One line says
 * so if the command is privileged (is_privileged); with --children, one says so of the programs
 * that its children execute.
 */
void command_warn(const struct command *c, const struct options *o);

/* Returns true while the child waits for the order to execute the command. */
static inline bool command_is_held(const struct command *c)
{
	return c->go_fd >= 0;
}

/*
 * To be called at every turn. While the child waits:
 * - if capture has attached to the child, orders the child to execute the command;
 * - if the server of the command's DSN takes no profiles (children/server_limit.h), orders it, too:
 *   capture does not attach now, and the command is profiled later;
 * - if the command cannot be profiled (INSTANCE_LEFT_OUT), makes the child exit with
 *   COMMAND_NOT_STARTED.
 * When the child no longer waits, closes c->file and sets ts->held_pid to 0.
 */
void command_check(struct command *c, struct targets *ts);

/* Closes the child's socket: a child that still waits exits with COMMAND_NOT_STARTED. */
void command_cancel(struct command *c);

/*
 * Handles a signal that the broker has received. Some signals are for the command, until it has
 * ended:
 * - SIGINT, SIGQUIT, SIGTERM and SIGHUP. If another process has sent the signal to the broker, this
 *   function forwards it to the command. It forwards no signal of a terminal, which the terminal
 *   sends to the command, too, and none that the command itself has sent.
 * - SIGTSTP of a terminal, which sends it to the command, too.
 *
 * Returns true for these: the caller must ignore them. Returns false for all other signals.
 */
must_check bool command_handle_signal(const struct command *c, const struct signalfd_siginfo *info);

/*
 * To be called after a SIGCHLD: if the terminal has stopped the command, sets s->suspend_requested,
 * so that the broker stops, too. If the command was continued, clears s->suspend_requested.
 */
void command_check_stopped(const struct command *c, struct state *s);

/* Records that the command has ended, with this status of wait(2). */
void command_ended(struct command *c, int status);

/* Returns the exit status of a command that has ended: its own, or 128 + n after signal n. */
int command_exit_status(const struct command *c);

/*
 * For a broker that could not start and has no event loop: closes the child's socket, waits for the
 * end of the command, and returns command_exit_status(), or COMMAND_NOT_STARTED if wait(2) fails. A
 * child that still waits exits without running the command.
 */
int command_abandon(struct command *c);

#endif
