/*
 * Why a chunk does not arrive at its destination. Each loss is counted under one of these
 * reasons, shown in the figures, and reported to Sentry (proto/client_report.h).
 *
 * A reason is an enum discard, or an enum profile_fault (proto/profile.h) for a chunk that
 * cannot be encoded; the values of the two do not overlap.
 */
#ifndef DAEMON_MSG_DISCARD_H
#define DAEMON_MSG_DISCARD_H

#include <stdint.h>

#include "proto/client_report.h"

/* X(reason, its name in figures, the reason of Sentry's client report) */
#define DISCARD_LIST(X)                                                         \
	/* no memory or no space for the payload */                             \
	X(DISCARD_MEMORY, "internal_sdk_error", INTERNAL_SDK_ERROR)             \
	/* above the server's limit in spite of the cut */                      \
	X(DISCARD_TOO_LARGE, "too_large", INTERNAL_SDK_ERROR)                   \
	X(DISCARD_NETWORK_ERROR, "network_error", NETWORK_ERROR)                \
	X(DISCARD_SEND_ERROR, "send_error", SEND_ERROR)                         \
	X(DISCARD_RATE_LIMITED, "ratelimit_backoff", RATELIMIT_BACKOFF)         \
	X(DISCARD_QUEUE_OVERFLOW, "queue_overflow", QUEUE_OVERFLOW)             \
	X(DISCARD_WRITE_ERROR, "write_error", INTERNAL_SDK_ERROR)               \
	X(DISCARD_SHUTDOWN, "shutdown", INTERNAL_SDK_ERROR)                     \
	X(DISCARD_UNWIND_DIED, "unwind_died", INTERNAL_SDK_ERROR)               \
	/* unwind compiles no further programs (daemon/unwind/exec_budget.h) */ \
	X(DISCARD_EXEC_BUDGET, "exec_budget", BACKPRESSURE)

enum discard {
	DISCARD_FAULTS_END = 19, /* profile_fault is smaller */
#define X(reason, name, report) reason,
	DISCARD_LIST(X)
#undef X
		DISCARD_N
};

/* Returns the name of a reason in figures. reason: an enum discard or an enum profile_fault. */
const char *discard_name(uint32_t reason);

/* Returns the reason in Sentry's client report, which is the same for several reasons here. */
enum client_report_reason discard_report(uint32_t reason);

#endif
