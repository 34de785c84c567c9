/*
 * The end of a run, in this order: capture lets go of the targets, unwind makes
 * the last chunks, they are delivered, and what was found is printed. Each step
 * runs the loop, and none waits for ever.
 */
#ifndef DAEMON_BROKER_FINISH_H
#define DAEMON_BROKER_FINISH_H

#include "daemon/broker/broker.h"

/* The exit status of a run whose chunks were all lost (finish_lost_all). */
#define FINISH_STATUS_ALL_LOST 3

/* Capture lets go of the targets; unwind makes the last chunks. */
void finish_sampling(struct broker *b);
/* A signal after the one that ended the profiling ends the wait. */
void finish_delivery(struct broker *b);
/* Each target's, written by unwind to stdout. */
void finish_print_tables(struct broker *b);
/* Not before the children have ended: how many chunks became what. */
void finish_print_outcome(const struct broker *b);
/*
 * Not before the children have ended: true if chunks were lost, and not one of
 * the run has been sent, written to a file or put into the spool. Prints one
 * line then. A process that ended before it had two samples made no chunk that
 * could be lost, and without a DSN and a directory nothing was to be kept.
 */
bool finish_lost_all(const struct broker *b);
/*
 * Says in a line how many chunks were lost, for a run whose exit status is its
 * command's.
 */
void finish_tell_lost(const struct broker *b);

/*
 * --output FILE: makes the file of the envelopes. Runs the loop meanwhile; a signal that
 * ends sentry-profd ends the conversion.
 */
void finish_picture(struct broker *b);
/* A line on standard error with what shows the profile that was written. */
void finish_tell_next(const struct broker *b);
/* Waits for the end of the command. Returns its exit status: command_exit_status. */
int finish_command(struct broker *b);
/* Closes the children's sockets, waits for their end, kills what is left. */
void finish_children(struct broker *b);

#endif
