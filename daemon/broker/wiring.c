#include "daemon/broker/wiring.h"

#include <sys/resource.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/inbox.h"
#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/held_execs.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/totals.h"

static void on_started(void *ctx, struct child *child)
{
	struct broker *b = ctx;

	if (child->type->kind == CHILD_CAPTURE)
		FOR_EACH_RUN (run, &b->modules.targets)
			attach_start(&b->modules.targets, run);
	else if (child->type->kind == CHILD_SHIP)
		delivery_resend(&b->modules.delivery, (struct ship *)child);
	attach_check(&b->modules.targets);
}

static void count_death(struct broker *b, const struct unwind *u, int status)
{
	const struct quarantine_file *f =
		quarantine_unwind_died(&b->modules.quarantine, &u->key, u->reading, status);

	if (f != NULL)
		degraded_begin(&b->modules.state.degraded, DEGRADED_FILES,
			       "sentry-profd-unwind has died %u times at %s for processes of uid "
			       "%u (files so far: %zu)",
			       QUARANTINE_DEATHS, f->file.name, u->key.uid,
			       quarantine_count_files(&b->modules.quarantine));
}

static void on_died(void *ctx, struct child *child, int status)
{
	struct broker *b = ctx;
	struct unwind *u = (struct unwind *)child;

	switch (child->type->kind) {
	case CHILD_CAPTURE:
		held_execs_clear(&b->modules.targets);
		if (!b->modules.children.capture_done)
			totals_capture_died(&b->modules.targets, 0);
		break;
	case CHILD_UNWIND:
		count_death(b, u, status);
		u->has_died = true;
		files_forget(b->modules.files, child);
		totals_unwind_died(&b->modules.targets, u);
		break;
	case CHILD_SHIP:
		if (child->is_leaving)
			delivery_ship_gone(&b->modules.delivery, (struct ship *)child);
		break;
	case CHILD_KIND_N:
		break;
	}
}

/*
 * A helper of b->modules.files or of discovery has ended. Its processor time is added to the
 * broker's; for discovery it is zeros, so that it is added only once.
 */
static void helper_ended(struct broker *b, int32_t pid, const struct rusage *usage)
{
	static const struct rusage counted;

	files_reaped(b->modules.files, pid, usage);
	if (b->modules.discovery != NULL)
		discovery_reaped(b->modules.discovery, pid, &counted);
}

static void on_other_ended(void *ctx, int32_t pid, int status, const struct rusage *usage)
{
	struct broker *b = ctx;

	if (pid == b->command.pid)
		command_ended(&b->command, status);
	else if (!output_conversion_reaped(&b->conversion, pid, status))
		helper_ended(b, pid, usage);
}

static void on_instance_gone(void *ctx, struct instance *i)
{
	struct broker *b = ctx;

	discovery_instance_gone(b->modules.discovery, i);
	clients_forget(&b->requests.clients, i);
}

/* A rule of its section on the user may not match it any more. */
static void on_owner_changed(void *ctx, struct instance *i)
{
	struct broker *b = ctx;

	if (b->modules.discovery != NULL)
		discovery_recheck(b->modules.discovery, i->pid);
}

void wiring_connect(struct broker *b)
{
	b->modules.children.state = &b->modules.state;
	b->modules.children.events = (struct child_events){
		.ctx = b,
		.message = inbox_handle,
		.started = on_started,
		.died = on_died,
		.other_ended = on_other_ended,
	};
	b->modules.delivery.state = &b->modules.state;
	b->modules.delivery.children = &b->modules.children;
	b->modules.targets.state = &b->modules.state;
	b->modules.targets.children = &b->modules.children;
	b->modules.targets.delivery = &b->modules.delivery;
	b->modules.targets.governor = &b->modules.governor;
	b->modules.targets.events = (struct targets_events){
		.ctx = b,
		.instance_gone = on_instance_gone,
		.owner_changed = on_owner_changed,
	};
	b->requests.modules = &b->modules;
	b->requests.notify = &b->notify;
	b->requests.inspector.modules = &b->modules;
	b->requests.clients.targets = &b->modules.targets;
	b->requests.recordings.targets = &b->modules.targets;
}
