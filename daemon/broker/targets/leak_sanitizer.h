/*
 * Keeps capture away from processes with LeakSanitizer, which cannot work in a traced process.
 * Before capture attaches to a process, this module asks whether the process has LeakSanitizer
 * (children/leak_check.h). If so, and if no option of the process switches LeakSanitizer off, the
 * run (run.h) is refused, and the log and the status give the reason. With leak_check = attach or
 * sampler = perf in the configuration, nothing is asked, and capture attaches in any case.
 *
 * Capture attaches without an answer if the files of the process cannot be opened, if
 * run_files_suspended() is true, or if the answer takes longer than LEAK_SANITIZER_ANSWER_NS.
 */
#ifndef DAEMON_BROKER_TARGETS_LEAK_SANITIZER_H
#define DAEMON_BROKER_TARGETS_LEAK_SANITIZER_H

#include "daemon/broker/children/leak_check.h"
#include "daemon/broker/targets/targets.h"

/* An answer takes milliseconds, and some seconds while the unwind process reads a large file. */
#define LEAK_SANITIZER_ANSWER_NS (10 * NS_PER_SEC)

enum leak_sanitizer_verdict {
	LEAK_SANITIZER_WAIT,   /* no answer yet: call again at the next turn */
	LEAK_SANITIZER_ATTACH, /* capture may attach */
	LEAK_SANITIZER_LEAVE,  /* the process has LeakSanitizer: call leak_sanitizer_refuse() */
};

/*
 * Decides whether capture may attach to the process of run. The first call asks the question;
 * run->unwind must be set. The question is about the program that the process runs; for the process
 * of `sentry-profd -- COMMAND`, before its exec, about the file of COMMAND. If the process has
 * executed another program since the question, asks again; after four questions returns
 * LEAK_SANITIZER_ATTACH.
 */
enum leak_sanitizer_verdict leak_sanitizer_check(struct targets *ts, struct run *run);

/*
 * Call it after LEAK_SANITIZER_LEAVE: logs the reason, sets run->has_leak_check, sets
 * run->attach_error to ENOTSUP, and closes the run.
 */
void leak_sanitizer_refuse(struct targets *ts, struct run *run);

/*
 * Frees the question of run. Call it when capture attaches to the process or the run is retired.
 * The next attachment asks again.
 */
void leak_sanitizer_forget(struct run *run);

#endif
