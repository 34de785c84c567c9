/*
 * Exec budget: limits the chunks of programs that end by an exec.
 *
 * Each program has chunks of its own, so a process that executes one program after
 * another would cause a chunk for each, 90 a second. A stream asks the budget when
 * such a chunk is closed. The budget allows a burst, and after that one chunk every
 * EXEC_BUDGET_EVERY_NS. So the chunk of a program that ran for that long is always
 * allowed.
 *
 * The budget logs when it begins to hold chunks back, and when that is over. Times
 * are those of ticks.
 */
#ifndef DAEMON_UNWIND_EXEC_BUDGET_H
#define DAEMON_UNWIND_EXEC_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* More execs than the start of a container, or wrappers before a service, need. */
#define EXEC_BUDGET_BURST 30
/* 6 a minute. A program that stays has 1 chunk a minute. */
#define EXEC_BUDGET_EVERY_NS (10 * NS_PER_SEC)

/* Zero: the budget is full. */
struct exec_budget {
	uint64_t full_ns;  /* token bucket (lib/base/bucket.h): EXEC_BUDGET_EVERY_NS a chunk */
	uint64_t began_ns; /* begin of the present program */
	/* Chunks held back since the budget was used up; 0 again once a program
	 * has run for EXEC_BUDGET_EVERY_NS. */
	uint64_t held_back;
};

/*
 * Takes one chunk from the budget, for the program of process pid that ended at
 * now_ns. Returns false if the chunk is to be discarded.
 */
must_check bool exec_budget_take(struct exec_budget *b, int32_t pid, uint64_t now_ns);

/* Another program runs from time_ns on. */
void exec_budget_begin(struct exec_budget *b, uint64_t time_ns);

/* Called at each tick: logs when the present program has run long enough. */
void exec_budget_check(struct exec_budget *b, int32_t pid, uint64_t now_ns);

#endif
