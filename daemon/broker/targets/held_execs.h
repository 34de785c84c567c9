/*
 * Processes that capture holds at the stop of their exec (MSG_EXEC_HELD): finds out whether the new
 * program has LeakSanitizer (children/leak_check.h), and tells capture to leave the process or to
 * go on. A target that is left ends its run, and is not attached again (targets/leaks.h). A process
 * of which that cannot be found out in time is left, too; its next run begins with a question of
 * its own.
 */
#ifndef DAEMON_BROKER_TARGETS_HELD_EXECS_H
#define DAEMON_BROKER_TARGETS_HELD_EXECS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/targets/targets.h"

/* Less than the second after which capture leaves the process by itself. */
#define HELD_EXEC_ANSWER_NS (900 * NS_PER_MS)

/* Handles MSG_EXEC_HELD of process pid. */
void held_execs_ask(struct targets *ts, int32_t pid);

/* To be called at every turn, before leak_check_turn(): sends the decisions that are possible now.
 */
void held_execs_check(struct targets *ts);

/* Capture has ended, so no process is held any more. */
void held_execs_clear(struct targets *ts);

/* Returns true if a question needs the unwind process. */
bool held_execs_need(const struct targets *ts, const struct unwind *u);

#endif
