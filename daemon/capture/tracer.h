/*
 * Runs capture's tracing in a thread of its own, the tracer. When the thread ends, the kernel
 * detaches all its tracees, without stopping them: so capture ends the thread to detach.
 */
#ifndef DAEMON_CAPTURE_TRACER_H
#define DAEMON_CAPTURE_TRACER_H

#include "lib/base/util.h"

/*
 * Calls run(ctx) in a new thread. Returns 0 when the thread has ended and the kernel has detached
 * all its tracees, so that other threads can trace them. Returns -errno if it cannot make a thread.
 */
must_check int tracer_run(void (*run)(void *ctx), void *ctx);

#endif
