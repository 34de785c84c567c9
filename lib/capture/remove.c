/*
 * Letting go of one target. PTRACE_DETACH is for a thread that is stopped, and
 * a stop takes one that is blocked out of its call. The end of the thread that
 * traces them stops nobody: so it ends, and another one attaches to those that
 * are to be kept.
 */
#include "lib/capture/target.h"

int capture_remove(struct capture *c, uint32_t id)
{
	FOR_EACH_TARGET (t, c) {
		if (t->id != id || t->phase == TARGET_ENDED)
			continue;
		if (c->n_leaving == 0)
			c->others = (struct settle){0};
		c->n_leaving += t->phase != TARGET_LEAVES;
		t->phase = TARGET_LEAVES;
		target_plan(t);
		return 0;
	}
	return -ENOENT;
}

bool capture_is_leaving(const struct capture *c)
{
	return c->n_leaving > 0;
}

/*
 * Those that are new, and the leader of a new program, are found by a scan.
 * False: another tracer has taken it.
 */
static bool attach_again(struct target *t)
{
	int r;

	target_seize_again(t);
	/* Nobody told us of an exec meanwhile. */
	target_look_for_exec(t);
	target_end_pass(t);
	r = target_scan(t);
	if (t->n_threads > 0 || t->held_up_ticks > 0)
		return true;
	if (r == -EPERM || r == -EBUSY)
		return false;
	target_end(t);
	return true;
}

void capture_attach_again(struct capture *c)
{
	c->settle = (struct settle){0};
	for (size_t i = 0; i < c->n_targets;) {
		struct target *t = c->targets[i].target;

		c->options.beat->touching = t->id;
		if (t->phase == TARGET_LEAVES)
			target_finish(t);
		if (t->phase == TARGET_ENDED || attach_again(t)) {
			i++;
			continue;
		}
		c->options.event(c->options.ctx, t->id, CAPTURE_TAKEN);
		target_free(t);
	}
	c->options.beat->touching = 0;
	capture_free_ended(c);
}
