#include "lib/capture/held_exec.h"

#include "lib/capture/state.h"
#include "lib/capture/tracees.h"

static struct traced_process *target_of(const struct capture *c, int32_t pid)
{
	FOR_EACH_TARGET (t, c)
		if (t->pid == pid && t->phase != TRACED_ENDED)
			return t;
	return NULL;
}

bool held_exec_begin(struct capture *c, int32_t pid)
{
	struct traced_process *t = target_of(c, pid);

	if (c->options.executed == NULL || c->n_held_execs == HELD_EXEC_MAX ||
	    !c->options.executed(c->options.ctx, pid))
		return false;
	c->held_execs[c->n_held_execs++] = (struct held_exec){pid, c->options.now_ns()};
	if (t != NULL) {
		t->exec.held = true;
		tracees_forget_all(t);
	}
	return true;
}

static size_t place_of(const struct capture *c, int32_t pid)
{
	size_t i = 0;

	while (i < c->n_held_execs && c->held_execs[i].pid != pid)
		i++;
	return i;
}

bool held_exec_is(const struct capture *c, int32_t pid)
{
	return place_of(c, pid) < c->n_held_execs;
}

bool held_exec_end(struct capture *c, int32_t pid)
{
	struct traced_process *t = target_of(c, pid);
	const size_t i = place_of(c, pid);

	if (i == c->n_held_execs)
		return false;
	c->held_execs[i] = c->held_execs[--c->n_held_execs];
	if (t != NULL)
		t->exec.held = false;
	return true;
}

void held_exec_forget_all(struct capture *c)
{
	while (c->n_held_execs > 0)
		(void)held_exec_end(c, c->held_execs[0].pid);
}

int32_t held_exec_overdue(const struct capture *c)
{
	for (size_t i = 0; i < c->n_held_execs; i++)
		if (c->options.now_ns() - c->held_execs[i].since_ns >= HELD_EXEC_NS)
			return c->held_execs[i].pid;
	return 0;
}

bool capture_holds_execs(const struct capture *c)
{
	return c->n_held_execs > 0;
}
