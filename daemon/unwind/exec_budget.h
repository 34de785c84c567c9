/*
 * Exec budget: limits the number of chunks that end because the process executes another program.
 *
 * Each program has chunks of its own. Without a limit a process that executes a program every 11 ms
 * would cause 90 chunks a second. Each session has a budget. When an exec has ended a chunk,
 * stream.c calls exec_budget_take(), and then exec_budget_begin(). The budget allows
 * EXEC_BUDGET_BURST chunks at once, then one chunk every EXEC_BUDGET_EVERY_NS. So it always allows
 * the chunk of a program that ran for EXEC_BUDGET_EVERY_NS. A chunk that the budget does not allow
 * is held back: the caller discards the chunk.
 *
 * The log has a line when the first chunk is held back, and another one as soon as a later program
 * has run for EXEC_BUDGET_EVERY_NS.
 *
 * Times are those of records (lib/capture/sample.h): CLOCK_MONOTONIC, in ns.
 */
#ifndef DAEMON_UNWIND_EXEC_BUDGET_H
#define DAEMON_UNWIND_EXEC_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* More than the execs at the start of a container, or of wrapper scripts before a service. */
#define EXEC_BUDGET_BURST 30
/* 6 chunks a minute. A program without execs has 1 chunk a minute. */
#define EXEC_BUDGET_EVERY_NS (10 * NS_PER_SEC)

/* Initialise to zeros: EXEC_BUDGET_BURST chunks are allowed at once. */
struct exec_budget {
	/*
	 * When the token bucket (lib/base/token_bucket.h) is full again. A chunk takes
	 * EXEC_BUDGET_EVERY_NS out of it.
	 */
	uint64_t full_ns;
	uint64_t began_ns; /* when the present program began */
	/* Chunks held back since exec_budget_log_end() last logged. */
	uint64_t held_back;
};

/*
 * Takes one chunk out of the budget, for a program that ended at now_ns. Returns false if the
 * budget does not allow the chunk: the caller discards it. pid is only for the log.
 */
must_check bool exec_budget_take(struct exec_budget *b, int32_t pid, uint64_t now_ns);

/* Records that the process runs another program from time_ns on. Call it after each exec. */
void exec_budget_begin(struct exec_budget *b, uint64_t time_ns);

/*
 * Logs the number of chunks held back and sets it to 0, if it is above 0 and the present program
 * has run for EXEC_BUDGET_EVERY_NS at now_ns. Call it at each tick.
 */
void exec_budget_log_end(struct exec_budget *b, int32_t pid, uint64_t now_ns);

#endif
