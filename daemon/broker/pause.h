/*
 * SIGTSTP: the broker lets go of all targets, stops itself, and attaches to the targets again
 * when it is continued. Sessions stay open meanwhile. SIGSTOP cannot be caught: then capture
 * goes on sampling.
 */
#ifndef DAEMON_BROKER_PAUSE_H
#define DAEMON_BROKER_PAUSE_H

#include "daemon/broker/broker.h"

/*
 * Lets go, stops this process as SIGTSTP would have, and when it is continued
 * has capture started again. Does not stop if b->parts.state.pause_asked is taken back
 * meanwhile. Runs the loop while it waits for capture to end.
 */
void pause_broker(struct broker *b);

#endif
