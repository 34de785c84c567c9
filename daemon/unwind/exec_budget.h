/*
 * Exec budget: limits the chunks of programs that end by an exec.
 *
 * Each program has chunks of its own. A process that executes another program every
 * 11 ms would thus cause 90 chunks a second. stream.c asks the budget of the session when an
 * exec has ended a chunk. The budget allows EXEC_BUDGET_BURST chunks at once, then one chunk
 * every EXEC_BUDGET_EVERY_NS. So the chunk of a program that ran for that long is always
 * allowed. Chunks that are not allowed are discarded, called held back here.
 *
 * The budget logs a line when it holds the first chunk back, and another one when a
 * program has run for EXEC_BUDGET_EVERY_NS again.
 *
 * Times are those of records: CLOCK_MONOTONIC, in ns.
 */
#ifndef DAEMON_UNWIND_EXEC_BUDGET_H
#define DAEMON_UNWIND_EXEC_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* More execs than the start of a container, or wrappers before a service, need. */
#define EXEC_BUDGET_BURST 30
/* 6 chunks a minute. A program without execs has 1 chunk a minute. */
#define EXEC_BUDGET_EVERY_NS (10 * NS_PER_SEC)

/* Initialise to zeros: EXEC_BUDGET_BURST chunks are allowed at once. */
struct exec_budget {
	/* Token bucket (lib/base/token_bucket.h): when it is full again. A chunk takes
	 * EXEC_BUDGET_EVERY_NS. */
	uint64_t full_ns;
	uint64_t began_ns; /* when the present program began */
	/* Chunks held back since the first line of the log; 0 after the second line. */
	uint64_t held_back;
};

/*
 * Takes one chunk from the budget, for the program of process pid that ended at
 * now_ns. Returns false if the budget does not allow the chunk: the caller discards it.
 */
must_check bool exec_budget_take(struct exec_budget *b, int32_t pid, uint64_t now_ns);

/* Records that the process runs another program from time_ns on. */
void exec_budget_begin(struct exec_budget *b, uint64_t time_ns);

/*
 * Logs the number of chunks held back, if there are some and the present program has run for
 * EXEC_BUDGET_EVERY_NS at now_ns; then sets the number to 0. Call it at each tick.
 */
void exec_budget_log_end(struct exec_budget *b, int32_t pid, uint64_t now_ns);

#endif
