/*
 * The reasons why a chunk is discarded, which means that it does not arrive at its destination.
 * Each discarded chunk is counted under one reason. The statistics (chunks.discarded) and metrics
 * (chunks_discarded_total) show the counts; the server gets them in client reports
 * (proto/client_report.h).
 *
 * A reason is an enum discard; or, if the profile breaks a rule of the server, an enum
 * profile_fault (proto/profile.h). The values of the two enums do not overlap.
 */
#ifndef DAEMON_MSG_DISCARD_H
#define DAEMON_MSG_DISCARD_H

#include <stdint.h>

#include "proto/client_report.h"

/*
 * X(reason, its name in statistics and metrics, the reason CLIENT_REPORT_* in reports). Each
 * comment is about the reason below it. DISCARD_RATE_LIMITED: a rate limit of the server was in
 * force. DISCARD_WRITE_ERROR: writing the output file failed, and the chunk was for no server.
 */
#define DISCARD_LIST(X)                                                        \
	/* no memory or no space for the payload */                            \
	X(DISCARD_MEMORY, "internal_sdk_error", INTERNAL_SDK_ERROR)            \
	/* a payload above the server's limit, 50 MB; chunks end near 20 MB */ \
	X(DISCARD_TOO_LARGE, "too_large", INTERNAL_SDK_ERROR)                  \
	/* the server had not answered by the time ship ended */               \
	X(DISCARD_NETWORK_ERROR, "network_error", NETWORK_ERROR)               \
	/* the server refused the chunk; or it refused the DSN (401, 403),     \
	   and still did when ship ended */                                    \
	X(DISCARD_SEND_ERROR, "send_error", SEND_ERROR)                        \
	X(DISCARD_RATE_LIMITED, "ratelimit_backoff", RATELIMIT_BACKOFF)        \
	/* too many chunks wait: the server is too slow */                     \
	X(DISCARD_QUEUE_OVERFLOW, "queue_overflow", QUEUE_OVERFLOW)            \
	X(DISCARD_WRITE_ERROR, "write_error", INTERNAL_SDK_ERROR)              \
	/* the daemon ended while the chunk was in flight */                   \
	X(DISCARD_SHUTDOWN, "shutdown", INTERNAL_SDK_ERROR)                    \
	/* the unwind process that was making the chunk died */                \
	X(DISCARD_UNWIND_DIED, "unwind_died", INTERNAL_SDK_ERROR)              \
	/* too many short programs, one after another, in one process:         \
	   daemon/unwind/exec_budget.h */                                      \
	X(DISCARD_EXEC_BUDGET, "exec_budget", BACKPRESSURE)                    \
	/* an unwind process sends more chunks than a target can need:         \
	   daemon/broker/delivery/delivery.h */                                \
	X(DISCARD_CHUNK_BUDGET, "chunk_budget", BACKPRESSURE)

enum discard {
	DISCARD_FAULTS_END = 19, /* not a reason: every enum profile_fault is smaller */
#define X(reason, name, report) reason,
	DISCARD_LIST(X)
#undef X
		DISCARD_N
};

/*
 * reason is an enum discard or an enum profile_fault, below DISCARD_N.
 *
 * discard_name() returns the name in statistics and metrics, a constant string. discard_report()
 * returns the reason in client reports, which know fewer reasons.
 */
const char *discard_name(uint32_t reason);
enum client_report_reason discard_report(uint32_t reason);

#endif
