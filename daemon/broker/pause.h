/*
 * SIGTSTP: capture detaches from all targets, the broker stops itself, and when it is continued
 * capture attaches again. Sessions in unwind stay open meanwhile. SIGSTOP cannot be caught: then
 * only the broker stops, and capture goes on sampling.
 */
#ifndef DAEMON_BROKER_PAUSE_H
#define DAEMON_BROKER_PAUSE_H

#include "daemon/broker/broker.h"

/*
 * Ends capture, stops this process as SIGTSTP would have, and has capture restarted after
 * SIGCONT. Does not stop if b->parts.state.pause_requested was cleared meanwhile. Runs the event
 * loop while it waits for capture to end.
 */
void pause_broker(struct broker *b);

#endif
