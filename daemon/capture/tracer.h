/* Runs a function in a thread of its own: at the thread's end the kernel detaches its tracees. */
#ifndef DAEMON_CAPTURE_TRACER_H
#define DAEMON_CAPTURE_TRACER_H

#include "lib/base/util.h"

/*
 * Runs `run` in a thread of its own, and returns when the thread has ended and none of its tracees
 * is traced by it any more. Returns 0, or -errno if no thread could be made.
 */
must_check int tracer_run(void (*run)(void *ctx), void *ctx);

#endif
