#include "daemon/broker/targets/leak_sanitizer.h"

#include "daemon/broker/targets/instance.h"
#include "daemon/process/process.h"
#include "daemon/process/refusal.h"
#include "lib/base/clock.h"

/*
 * Questions about one run. A process that executes another program each time while it is asked
 * about is attached to at last.
 */
#define QUESTIONS_MAX 4

static bool is_held(const struct targets *ts, const struct run *run)
{
	return run->pid == ts->held_pid;
}

/* Returns a number that changes when the process executes another program. */
static uint64_t program_of(const struct targets *ts, const struct run *run)
{
	struct process_identity now = {0};

	/* 0: before the command is executed. */
	return !is_held(ts, run) && process_identity(run->pid, &now) ? now.program_hash : 0;
}

/* Returns false if no question can be asked. */
static bool ask(struct targets *ts, struct run *run)
{
	struct owner now;
	int r;

	leak_question_free(&run->leak_question);
	if (run->leak_questions == QUESTIONS_MAX ||
	    run_files_suspended(run, state_now_ns(ts->state)))
		return false;
	/*
	 * The helper answers nothing about a program that was executed since the owner was read. So
	 * the program of the question is read before, and an exec in between leads to another
	 * question. If the key has changed, attach.c ends the run.
	 */
	run->leak_program = program_of(ts, run);
	if (!is_held(ts, run) && owner_read_again(&run->owner, &now) == 0 &&
	    owner_is_same(&run->owner, &now))
		run->owner = now;
	run->leak_questions++;
	if (is_held(ts, run))
		r = leak_check_file(ts->leak_check, run->unwind, ts->held_file, &ts->held_options,
				    LEAK_SANITIZER_ANSWER_NS, &run->leak_question);
	else
		r = leak_check_process(ts->leak_check, run->unwind, &run->owner, run->pidfd, false,
				       LEAK_SANITIZER_ANSWER_NS, &run->leak_question);
	return r == 0;
}

enum leak_sanitizer_verdict leak_sanitizer_check(struct targets *ts, struct run *run)
{
	if (!targets_trace(ts) || ts->leak_check == NULL ||
	    run->instance->config.leak_check == LEAK_CHECK_ATTACH)
		return LEAK_SANITIZER_ATTACH;
	if (run->leak_question == NULL)
		return ask(ts, run) ? LEAK_SANITIZER_WAIT : LEAK_SANITIZER_ATTACH;
	switch (leak_question_answer(run->leak_question)) {
	case LEAK_ANSWER_AWAITED:
		return LEAK_SANITIZER_WAIT;
	case LEAK_ANSWER_HANGS:
		run_files_hang(run, state_now_ns(ts->state));
		leak_sanitizer_forget(run);
		return LEAK_SANITIZER_ATTACH;
	case LEAK_ANSWER_NO:
	case LEAK_ANSWER_OFF:
	case LEAK_ANSWER_UNKNOWN:
		if (program_of(ts, run) == run->leak_program)
			return LEAK_SANITIZER_ATTACH;
		return ask(ts, run) ? LEAK_SANITIZER_WAIT : LEAK_SANITIZER_ATTACH;
	case LEAK_ANSWER_ASAN:
	case LEAK_ANSWER_LSAN:
		return LEAK_SANITIZER_LEAVE;
	}
	return LEAK_SANITIZER_ATTACH;
}

void leak_sanitizer_refuse(struct targets *ts, struct run *run)
{
	const bool is_asan = leak_question_answer(run->leak_question) == LEAK_ANSWER_ASAN;

	refusal_log_leak_check(run->pid, is_held(ts, run), !instance_has_section(run->instance),
			       is_asan);
	run->has_leak_check = true;
	run->attach_error = ENOTSUP;
	run_close(run);
}

void leak_sanitizer_forget(struct run *run)
{
	leak_question_free(&run->leak_question);
	run->leak_questions = 0;
}
