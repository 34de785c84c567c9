/*
 * Starts and stops targets, the runs of the profiler: the session in unwind, the place in
 * capture, and what capture says of them. Where another tracer was there first, waits for
 * its end.
 */
#ifndef DAEMON_BROKER_TARGETS_ATTACH_H
#define DAEMON_BROKER_TARGETS_ATTACH_H

#include "daemon/broker/targets/targets.h"

#include "daemon/msg/msg_capture.h"

/*
 * It is to be attached, again after capture was replaced: as soon as unwind
 * knows of it, and nobody else has attached to it meanwhile.
 */
void target_start(struct targets *ts, struct target *t);

/* Capture lets go of it, the last chunk is made, and it is closed. */
void target_stop(struct targets *ts, struct target *t);

void target_on_state(struct targets *ts, const struct msg_target_state *m);

/*
 * At every turn: tells unwind and capture of those that they can be told of
 * now, also where another tracer has let go.
 */
void targets_check(struct targets *ts);

/* target_close, of all. */
void targets_close(struct targets *ts);

/*
 * A target that is over leaves its instance: its figures become the instance's,
 * and unwind forgets its session. No function finds the target any more.
 */
void target_retire(struct target *t);

#endif
