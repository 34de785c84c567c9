/*
 * Decides about processes that capture holds at the stop of their exec (MSG_EXEC_HELD): asks
 * whether the new program has LeakSanitizer (children/leak_check.h), which cannot work in a traced
 * process. The answer decides:
 *
 *     no              the process goes on, and capture still traces it; capture no longer holds
 *                     processes of the same user that execute this file
 *     switched off    the program has LeakSanitizer, and an option switches it off: the process
 *                     goes on, and capture still traces it
 *     yes             capture detaches, the run (run.h) ends, and capture does not attach to the
 *                     process again as long as the process runs that program
 *     not known       or no answer within HELD_EXEC_ANSWER_NS: capture detaches, the run ends, and
 *                     the next run asks again (leak_sanitizer.h)
 */
#ifndef DAEMON_BROKER_TARGETS_HELD_EXECS_H
#define DAEMON_BROKER_TARGETS_HELD_EXECS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/targets/targets.h"

/* The timeout of an answer: less than the second after which capture detaches by itself. */
#define HELD_EXEC_ANSWER_NS (900 * NS_PER_MS)

/*
 * Call it when capture has sent MSG_EXEC_HELD about process pid. Asks the question. In two cases
 * sends capture a decision at once:
 * - the process goes on, if leak_check = attach is configured for the process, or if
 *   HELD_EXECS_MAX (targets.h) questions are open;
 * - capture detaches, if the question cannot be asked.
 */
void held_execs_ask(struct targets *ts, int32_t pid);

/* Call it at every turn, before leak_check_turn(). Sends capture a decision for each answer. */
void held_execs_check(struct targets *ts);

/* Call it when capture has ended, so that no process is held any more. Cancels all questions. */
void held_execs_clear(struct targets *ts);

/* Returns true if an open question needs the unwind process u: the caller must not end u. */
bool held_execs_need(const struct targets *ts, const struct unwind *u);

#endif
