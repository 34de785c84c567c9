/*
 * How many chunks of a target may end by an exec. Each program has chunks of
 * its own, so a process that executes one after another would have one sent for
 * each of them, 90 a second. So there may be a burst, and after that one every
 * while. What has lived that long is always sent: its own time has paid for it.
 *
 * Says when it begins to hold chunks back, and when that is over. Knows no
 * clock: times are those of ticks.
 */
#ifndef DAEMON_UNWIND_EXEC_BUDGET_H
#define DAEMON_UNWIND_EXEC_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* More than a container's start, or wrappers in front of a service, execute. */
#define EXEC_BUDGET_BURST 30
/* 6 a minute; of a program that stays there is 1. */
#define EXEC_BUDGET_EVERY_NS (10 * NS_PER_SEC)

/* All 0: nothing is used up. */
struct exec_budget {
	uint64_t full_ns;  /* lib/base/bucket.h: EXEC_BUDGET_EVERY_NS a chunk */
	uint64_t began_ns; /* the program that runs */
	/* Chunks, since the budget was used up first; 0: it was not, or a
	 * program has lived for EXEC_BUDGET_EVERY_NS since. */
	uint64_t held_back;
};

/*
 * The program that pid ran has ended at now_ns, and there is a chunk of it.
 * Returns whether it is to be sent; if not, it is held back.
 */
must_check bool exec_budget_take(struct exec_budget *b, int32_t pid, uint64_t now_ns);

/* Another one runs since then. */
void exec_budget_begin(struct exec_budget *b, uint64_t time_ns);

/* A tick: has it stayed? */
void exec_budget_check(struct exec_budget *b, int32_t pid, uint64_t now_ns);

#endif
