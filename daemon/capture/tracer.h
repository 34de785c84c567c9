/*
 * A thread that traces others, for whom its end is what lets go of them.
 */
#ifndef DAEMON_CAPTURE_TRACER_H
#define DAEMON_CAPTURE_TRACER_H

#include "lib/base/util.h"

/*
 * Runs that in a thread of its own, and returns when nobody is traced by it any
 * more: 0, or -errno if there is no thread.
 */
must_check int tracer_run(void (*run)(void *ctx), void *ctx);

#endif
