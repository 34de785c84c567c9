#include "daemon/broker/targets/leaks.h"

#include "daemon/broker/targets/instance.h"
#include "daemon/process/process.h"
#include "daemon/process/refusal.h"
#include "lib/base/clock.h"

/*
 * Questions about one run. A process that executes another program each time while it is asked
 * about is attached to at last.
 */
#define QUESTIONS_MAX 4

static bool is_held(const struct targets *ts, const struct target *t)
{
	return t->pid == ts->held_pid;
}

/* Returns a number that changes when the process executes another program. */
static uint64_t program_of(const struct targets *ts, const struct target *t)
{
	struct process_identity now = {0};

	/* 0: before the command is executed. */
	return !is_held(ts, t) && process_identity(t->pid, &now) ? now.program_hash : 0;
}

/* Returns false if no question can be asked. */
static bool ask(struct targets *ts, struct target *t)
{
	struct owner now;
	int r;

	leak_question_free(&t->leak_question);
	if (t->leak_questions == QUESTIONS_MAX ||
	    target_files_suspended(t, state_now_ns(ts->state)))
		return false;
	/*
	 * The helper answers nothing about a program that was executed since the owner was read. So
	 * the program of the question is read before, and an exec in between leads to another
	 * question. If the key has changed, attach.c ends the run.
	 */
	t->leak_program = program_of(ts, t);
	if (!is_held(ts, t) && owner_read_again(&t->owner, &now) == 0 &&
	    owner_is_same(&t->owner, &now))
		t->owner = now;
	t->leak_questions++;
	if (is_held(ts, t))
		r = leak_check_file(ts->leak_check, t->unwind, ts->held_file, &ts->held_options,
				    LEAKS_ANSWER_NS, &t->leak_question);
	else
		r = leak_check_process(ts->leak_check, t->unwind, &t->owner, t->pidfd, false,
				       LEAKS_ANSWER_NS, &t->leak_question);
	return r == 0;
}

enum leaks_verdict leaks_check(struct targets *ts, struct target *t)
{
	if (ts->leak_check == NULL || t->instance->config.leak_check == LEAK_CHECK_ATTACH)
		return LEAKS_ATTACH;
	if (t->leak_question == NULL)
		return ask(ts, t) ? LEAKS_WAIT : LEAKS_ATTACH;
	switch (leak_question_answer(t->leak_question)) {
	case LEAK_ANSWER_AWAITED:
		return LEAKS_WAIT;
	case LEAK_ANSWER_HANGS:
		target_files_hang(t, state_now_ns(ts->state));
		leaks_forget(t);
		return LEAKS_ATTACH;
	case LEAK_ANSWER_NO:
	case LEAK_ANSWER_OFF:
	case LEAK_ANSWER_UNKNOWN:
		if (program_of(ts, t) == t->leak_program)
			return LEAKS_ATTACH;
		return ask(ts, t) ? LEAKS_WAIT : LEAKS_ATTACH;
	case LEAK_ANSWER_ASAN:
	case LEAK_ANSWER_LSAN:
		return LEAKS_LEAVE;
	}
	return LEAKS_ATTACH;
}

void leaks_refuse(struct targets *ts, struct target *t)
{
	const bool is_asan = leak_question_answer(t->leak_question) == LEAK_ANSWER_ASAN;

	refusal_log_leak_check(t->pid, is_held(ts, t), !instance_has_section(t->instance), is_asan);
	t->has_leak_check = true;
	t->attach_error = ENOTSUP;
	target_close(t);
}

void leaks_forget(struct target *t)
{
	leak_question_free(&t->leak_question);
	t->leak_questions = 0;
}
