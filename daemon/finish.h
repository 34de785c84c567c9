/*
 * The end of a run, in this order: capture lets go of the targets, unwind makes
 * the last chunks, they are delivered, and what was found is printed. Each step
 * runs the loop, and none waits for ever.
 */
#ifndef DAEMON_FINISH_H
#define DAEMON_FINISH_H

#include "daemon/broker.h"

/* Capture lets go of the targets; unwind makes the last chunks. */
void finish_sampling(struct broker *b);
/* A signal after the one that ended the profiling ends the wait. */
void finish_delivery(struct broker *b);
/* Each target's, written by unwind to stdout. */
void finish_print_tables(struct broker *b);
/* Not before the children have ended: how many chunks became what. */
void finish_print_outcome(const struct broker *b);

#endif
