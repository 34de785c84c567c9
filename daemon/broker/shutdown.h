/*
 * Ends the sampling: for good when the broker ends, or until SIGCONT when SIGTSTP suspends the
 * broker.
 *
 * main.c calls the steps at the end of the broker in this order: capture detaches from the targets
 * and unwind makes the last chunks; the chunks are delivered; the results are printed. Most steps
 * run the event loop while they wait; each wait but that for the command has a timeout, or ends by
 * a signal.
 *
 * SIGTSTP: capture detaches from all targets, the broker stops itself, and when it is continued
 * capture attaches again. Sessions in unwind stay open meanwhile. SIGSTOP cannot be caught: then
 * only the broker stops, and capture goes on sampling.
 */
#ifndef DAEMON_BROKER_SHUTDOWN_H
#define DAEMON_BROKER_SHUTDOWN_H

#include "daemon/broker/broker.h"

/* The exit status of sentry-profd if all chunks were lost (shutdown_lost_all). */
#define SHUTDOWN_STATUS_ALL_LOST 3

/*
 * To be called after each turn: if SIGTSTP has come, ends capture, stops this process as SIGTSTP
 * would have, and has capture restarted after SIGCONT. Runs the event loop while it waits for
 * capture to end. If SIGCONT comes meanwhile (suspend_requested is cleared), does not stop this
 * process. The functions below that run turns call this function themselves.
 */
void shutdown_check_suspend(struct broker *b);

/* Ends the sampling: capture detaches from the targets and ends; unwind makes the last chunks. */
void shutdown_sampling(struct broker *b);
/*
 * Waits until the chunks in flight are delivered. The ships have shutdown_timeout to send them, and
 * then 13 s to write the rest to files or the spool and to report the outcomes. Another signal ends
 * the wait.
 */
void shutdown_delivery(struct broker *b);
/*
 * Logs the findings of report/times.h, and how many stacks were cut at the limit of frames
 * (--max-frames), if any were. A service logs neither.
 */
void shutdown_log_figures(const struct broker *b);
/*
 * Prints the table of functions of each target: orders unwind processes to write it to stdout, and
 * waits for them.
 */
void shutdown_print_tables(struct broker *b);
/*
 * Prints how many chunks were sent, written, spooled and discarded. Call it after
 * shutdown_children().
 */
void shutdown_print_outcome(const struct broker *b);
/*
 * Returns true, after one log line, if chunks were lost and none was sent, written to a file or put
 * into the spool. Call it after shutdown_children(). Returns false if there is neither a DSN nor
 * --output. A process that ended before it had two samples made no chunk, and loses none.
 */
bool shutdown_lost_all(const struct broker *b);
/* Logs how many chunks were lost. Used with a command, whose status is the exit status. */
void shutdown_log_lost(const struct broker *b);

/*
 * --output FILE: converts the envelopes to the file. Runs the event loop meanwhile; a signal
 * that would end sentry-profd kills the conversion.
 */
void shutdown_conversion(struct broker *b);
/* Prints on standard error the command that shows the profile that was written. */
void shutdown_print_viewer(const struct broker *b);
/* Waits, without a timeout, for the end of the command. Returns command_exit_status(). */
int shutdown_command(struct broker *b);
/*
 * Closes the children's sockets, waits for the children to end, and kills those that do not end
 * in time (children/watch.h).
 */
void shutdown_children(struct broker *b);

#endif
