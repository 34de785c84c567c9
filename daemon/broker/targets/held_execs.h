/*
 * Decides about processes that capture holds at the stop of their exec (MSG_EXEC_HELD): asks
 * whether the new program has LeakSanitizer (children/leak_check.h), which cannot work in a traced
 * process. If not, the process goes on. If so, capture detaches, the run (run.h) ends, and capture
 * does not attach to that program again. If there is no answer in time, capture detaches, too, and
 * the next run asks again (targets/leaks.h).
 */
#ifndef DAEMON_BROKER_TARGETS_HELD_EXECS_H
#define DAEMON_BROKER_TARGETS_HELD_EXECS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/targets/targets.h"

/* The timeout of an answer: less than the second after which capture detaches by itself. */
#define HELD_EXEC_ANSWER_NS (900 * NS_PER_MS)

/*
 * Handles MSG_EXEC_HELD of process pid: asks the question. If that fails, capture detaches. If
 * leak_check is attach, or HELD_EXECS_MAX questions are open, the process goes on without one.
 */
void held_execs_ask(struct targets *ts, int32_t pid);

/* Call it at every turn, before leak_check_turn(): sends capture the decisions that are known. */
void held_execs_check(struct targets *ts);

/* Call it when capture has ended, so that no process is held any more. Cancels all questions. */
void held_execs_clear(struct targets *ts);

/* Returns true if an open question needs the unwind process u, which must not be ended then. */
bool held_execs_need(const struct targets *ts, const struct unwind *u);

#endif
