/*
 * Letting go of all targets for a while, for SIGTSTP and for the server's
 * limits (limit.c).
 *
 * SIGTSTP: the broker lets go of all targets before it stops itself, and
 * attaches to them again when it is continued. Sessions stay open meanwhile.
 *
 * SIGSTOP cannot be caught: then capture goes on by itself.
 */
#ifndef DAEMON_PAUSE_H
#define DAEMON_PAUSE_H

#include "daemon/broker.h"

/*
 * Lets go, stops this process as SIGTSTP would have, and when it is continued
 * has capture started again. Does not stop if b->pause_asked is taken back
 * meanwhile. Runs the loop while it waits for capture to end.
 */
void pause_broker(struct broker *b);

/* Asks capture to let go, and to end; sessions stay. */
void pause_capture(struct broker *b);

/*
 * To be called until capture has ended: fails it when patience, which was
 * started when it was asked, is over.
 */
void pause_watch(struct broker *b, struct patience *patience);

/* Nothing is expected of the time until now; capture may be started again. */
void pause_over(struct broker *b, uint64_t now_ns);

#endif
