/*
 * The steps at the end of the broker. main.c calls them in this order: capture detaches from the
 * targets and unwind makes the last chunks; the chunks are delivered; the results are printed.
 * Most steps run the event loop while they wait; each wait but that for the command has a
 * timeout, or ends by a signal.
 */
#ifndef DAEMON_BROKER_FINISH_H
#define DAEMON_BROKER_FINISH_H

#include "daemon/broker/broker.h"

/* The exit status of sentry-profd if all chunks were lost (finish_lost_all). */
#define FINISH_STATUS_ALL_LOST 3

/* Ends the sampling: capture detaches from the targets and ends; unwind makes the last chunks. */
void finish_sampling(struct broker *b);
/*
 * Waits until the chunks in flight are delivered, for at most 13 s longer than shutdown_timeout:
 * after that the ships write the last chunks to files or the spool and report the outcomes. Another
 * signal ends the wait.
 */
void finish_delivery(struct broker *b);
/*
 * Logs what the run has to say about its times (report/times.h), and how many stacks were cut at
 * the limit of frames (--max-frames), if any were. A service logs neither.
 */
void finish_log_figures(const struct broker *b);
/* Prints the table of functions of each target. unwind writes it to stdout. */
void finish_print_tables(struct broker *b);
/*
 * Prints how many chunks were sent, written, spooled and discarded. Call it after
 * finish_children().
 */
void finish_print_outcome(const struct broker *b);
/*
 * Returns true, after one log line, if chunks were lost and none was sent, written to a file or put
 * into the spool. Call it after finish_children(). Returns false if there is neither a DSN nor
 * --output. A process that ended before it had two samples made no chunk that could be lost.
 */
bool finish_lost_all(const struct broker *b);
/* Logs how many chunks were lost. Used with a command, whose status is the exit status. */
void finish_log_lost(const struct broker *b);

/*
 * --output FILE: converts the envelopes to the file. Runs the event loop meanwhile; a signal
 * that would end sentry-profd kills the conversion.
 */
void finish_conversion(struct broker *b);
/* Prints on standard error the command that shows the profile that was written. */
void finish_print_viewer(const struct broker *b);
/* Waits, without a timeout, for the end of the command. Returns command_exit_status(). */
int finish_command(struct broker *b);
/*
 * Closes the children's sockets, waits for the children to end, and kills those that do not end
 * in time (children/watch.h).
 */
void finish_children(struct broker *b);

#endif
