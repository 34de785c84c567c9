/*
 * Ends the sampling: for good when the broker ends, or until SIGCONT when SIGTSTP suspends the
 * broker.
 *
 * At the end of the broker main.c calls these functions in this order, except for those that the
 * options make needless:
 * shutdown_sampling(), shutdown_delivery(), shutdown_print_tables(), shutdown_log_figures(),
 * shutdown_children(), shutdown_conversion(), shutdown_print_outcome(), shutdown_print_viewer(),
 * shutdown_lost_all(), shutdown_log_lost(), shutdown_command(). Functions that wait run the event
 * loop meanwhile. Each wait has a timeout or is ended by a signal, except for shutdown_command().
 *
 * SIGTSTP: capture detaches from all targets and ends, and the broker stops itself. After SIGCONT
 * the broker starts capture again, which attaches again. Sessions in unwind stay open meanwhile.
 * SIGSTOP cannot be caught: it stops only the broker, and capture goes on sampling.
 */
#ifndef DAEMON_BROKER_SHUTDOWN_H
#define DAEMON_BROKER_SHUTDOWN_H

#include "daemon/broker/broker.h"

/* The exit status of sentry-profd if all chunks were lost (shutdown_lost_all). */
#define SHUTDOWN_STATUS_ALL_LOST 3

/*
 * To be called after each turn. If SIGTSTP has come: ends capture, stops this process as SIGTSTP
 * would have, and after SIGCONT schedules the start of capture. Runs the event loop while it waits
 * for the end of capture. If SIGCONT comes during that wait, does not stop this process. The
 * functions below call this function themselves after the turns that they run.
 */
void shutdown_check_suspend(struct broker *b);

/*
 * Ends the sampling, and waits until capture has detached from all targets and ended, and then
 * until unwind has made the last chunks. Each of the two waits ends after 3 s without progress, or
 * 30 s in all (struct idle_timeout). A capture that has not ended by then is killed.
 */
void shutdown_sampling(struct broker *b);
/*
 * Waits until no envelope is in flight. The ships have the configured shutdown_timeout to send
 * chunks, and then 13 s to write the others to files or the spool and to report the outcomes. A
 * second signal to end sentry-profd ends the time to send; the 13 s begin then.
 */
void shutdown_delivery(struct broker *b);
/*
 * Logs the findings of report/times.h, and how many stacks were cut at a limit such as
 * --max-frames, if any were. In a service this function does nothing.
 */
void shutdown_log_figures(const struct broker *b);
/*
 * Prints tables of programs and functions: orders each unwind process to write one table for all
 * its targets to stdout, and waits for the tables, for 3 s without progress or 30 s in all.
 */
void shutdown_print_tables(struct broker *b);
/*
 * Prints to stdout how many chunks were sent, written, spooled and discarded. Call it after
 * shutdown_children() and delivery_give_up(), which counts the last losses.
 */
void shutdown_print_outcome(const struct broker *b);
/*
 * Returns true, after one log line, if chunks were lost and none was sent, written to a file or put
 * into the spool. Returns false if there is neither a DSN nor --output. A process that ended before
 * it had two samples made no chunk, and counts as no loss. Call it after delivery_give_up().
 */
bool shutdown_lost_all(const struct broker *b);
/*
 * Logs how many chunks were lost, if any were. For `-- COMMAND`: there the exit status is that of
 * the command, and cannot report the loss. Call it after delivery_give_up().
 */
void shutdown_log_lost(const struct broker *b);

/*
 * Call it if --output names a file: converts the envelopes to the file (output_conversion.h), and
 * waits for the end of the conversion. Sets b->conversion.is_made on success; otherwise logs a
 * line. A signal that would end sentry-profd kills the conversion.
 */
void shutdown_conversion(struct broker *b);
/*
 * Prints to stderr the command that shows the profile. Prints nothing in a service, with --quiet or
 * --transaction, or if no profile was written.
 */
void shutdown_print_viewer(const struct broker *b);
/*
 * Waits, without a timeout, for the end of the command of `-- COMMAND`. If the broker has not let
 * the command start yet, the child that would execute the command ends without executing it.
 * Returns command_exit_status().
 */
int shutdown_command(struct broker *b);
/*
 * Closes the children's sockets, waits for the children to end, and kills those that do not end
 * in time (children/watch.h).
 */
void shutdown_children(struct broker *b);

#endif
