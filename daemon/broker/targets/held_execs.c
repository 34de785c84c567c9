#include "daemon/broker/targets/held_execs.h"

#include "daemon/broker/children/child.h"
#include "daemon/broker/children/children.h"
#include "daemon/broker/children/leak_check.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/msg/msg_capture.h"
#include "daemon/process/process.h"
#include "daemon/process/refusal.h"

static void decide(struct targets *ts, int32_t pid, enum exec_decision decision)
{
	const struct msg_exec_decided m = {
		.h = MSG_HEADER(MSG_EXEC_DECIDED),
		.pid = pid,
		.decision = decision,
	};

	child_send(&ts->children->capture, &m, sizeof(m), NULL, 0);
}

/* Asks the question of e. Returns 0 or -errno. */
static int ask(struct targets *ts, struct held_exec *e, struct process *p)
{
	struct owner owner;
	int r = owner_read(e->pid, &owner);

	if (r == 0)
		r = children_get_unwind(ts->children, &owner, &e->unwind);
	if (r < 0)
		return r;
	e->pidfd = process_take_pidfd(p);
	r = leak_check_process(ts->leak_check, e->unwind, &owner, e->pidfd, true,
			       HELD_EXEC_ANSWER_NS, &e->question);
	if (r < 0)
		close_fd(&e->pidfd);
	return r;
}

void held_execs_ask(struct targets *ts, int32_t pid)
{
	const struct instance *i = instance_of_pid(ts, pid);
	struct held_exec *e = &ts->held_execs.list[ts->held_execs.n];
	struct process process;
	int r = -ESRCH;

	if (ts->leak_check == NULL || ts->held_execs.n == HELD_EXECS_MAX ||
	    (i != NULL && i->config.leak_check == LEAK_CHECK_ATTACH)) {
		decide(ts, pid, EXEC_GOES_ON);
		return;
	}
	*e = (struct held_exec){.pid = pid, .pidfd = -1};
	if (process_look(pid, &process) == PROCESS_TRACED)
		r = ask(ts, e, &process);
	close_fd(&process.pidfd);
	if (r == 0)
		ts->held_execs.n++;
	else
		decide(ts, pid, EXEC_LEFT);
}

/* The process has LeakSanitizer. If it is no target yet, leak_sanitizer.h finds that out, too. */
static void refuse(struct targets *ts, int32_t pid, bool is_asan)
{
	struct instance *i = instance_of_pid(ts, pid);
	struct process_identity now = {0};

	if (i == NULL || i->run == NULL || !i->run->in_capture)
		return;
	refusal_log_leak_check(pid, false, i->origin == INSTANCE_GIVEN, is_asan);
	(void)process_identity(pid, &now);
	i->run->has_leak_check = true;
	i->run->leak_program = now.program_hash;
}

/* Returns false if the answer is still awaited. */
static bool check(struct targets *ts, const struct held_exec *e)
{
	const enum leak_answer answer = leak_question_answer(e->question);

	switch (answer) {
	case LEAK_ANSWER_AWAITED:
		return false;
	case LEAK_ANSWER_NO:
		decide(ts, e->pid, EXEC_ALWAYS_GOES_ON);
		return true;
	case LEAK_ANSWER_OFF:
		decide(ts, e->pid, EXEC_GOES_ON);
		return true;
	case LEAK_ANSWER_ASAN:
	case LEAK_ANSWER_LSAN:
		refuse(ts, e->pid, answer == LEAK_ANSWER_ASAN);
		break;
	case LEAK_ANSWER_UNKNOWN:
	case LEAK_ANSWER_HANGS:
		break;
	}
	decide(ts, e->pid, EXEC_LEFT);
	return true;
}

static void remove_exec(struct targets *ts, size_t place)
{
	struct held_exec *e = &ts->held_execs.list[place];

	leak_question_free(&e->question);
	close_fd(&e->pidfd);
	*e = ts->held_execs.list[--ts->held_execs.n];
}

void held_execs_check(struct targets *ts)
{
	for (size_t i = ts->held_execs.n; i-- > 0;)
		if (check(ts, &ts->held_execs.list[i]))
			remove_exec(ts, i);
}

void held_execs_clear(struct targets *ts)
{
	while (ts->held_execs.n > 0)
		remove_exec(ts, ts->held_execs.n - 1);
}

bool held_execs_need(const struct targets *ts, const struct unwind *u)
{
	for (size_t i = 0; i < ts->held_execs.n; i++)
		if (ts->held_execs.list[i].unwind == u)
			return true;
	return false;
}
