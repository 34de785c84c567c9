/*
 * Keeps sentry-profd away from processes with LeakSanitizer: before capture attaches to a process,
 * asks whether it has LeakSanitizer (children/leak_check.h). If so, the run is refused, unless the
 * configuration says leak_check = attach. The reason is in the log and the status.
 *
 * A process of which that cannot be found out is attached: its files cannot be opened, or the
 * answer takes longer than LEAKS_ANSWER_NS.
 */
#ifndef DAEMON_BROKER_TARGETS_LEAKS_H
#define DAEMON_BROKER_TARGETS_LEAKS_H

#include "daemon/broker/children/leak_check.h"
#include "daemon/broker/targets/targets.h"

/* An answer takes milliseconds, and some seconds while the unwind process reads a large file. */
#define LEAKS_ANSWER_NS (10 * NS_PER_SEC)

enum leaks_verdict {
	LEAKS_WAIT,   /* no answer yet: call again at the next turn */
	LEAKS_ATTACH, /* capture may attach */
	LEAKS_LEAVE,  /* the process has LeakSanitizer: call leaks_refuse() */
};

/*
 * Decides about the process of run, which has an unwind process. If the process is sentry-profd's
 * own command and has not been executed yet, decides about the command's file instead. If the
 * process has executed another program since the question, asks again.
 */
enum leaks_verdict leaks_check(struct targets *ts, struct run *run);

/* Ends the run, which has not begun: logs the reason, and closes the run. */
void leaks_refuse(struct targets *ts, struct run *run);

/* Frees the question of run, because capture attaches to its process or the run ends. The next
 * attachment asks again.
 */
void leaks_forget(struct run *run);

#endif
