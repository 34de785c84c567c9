#include "daemon/broker/wiring.h"

#include "daemon/broker/broker.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/inbox.h"
#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/totals.h"

static void on_started(void *ctx, struct child *child)
{
	struct broker *b = ctx;

	if (child->type->kind == CHILD_CAPTURE)
		FOR_EACH_TARGET (t, &b->targets)
			target_start(&b->targets, t);
	else if (child->type->kind == CHILD_SHIP)
		delivery_resend(&b->delivery, (struct ship *)child);
	targets_check(&b->targets);
}

static void on_died(void *ctx, struct child *child, int status)
{
	struct broker *b = ctx;
	struct unwind *u = (struct unwind *)child;

	switch (child->type->kind) {
	case CHILD_CAPTURE:
		if (!b->children.capture_done)
			targets_capture_died(&b->targets, 0);
		break;
	case CHILD_UNWIND:
		quarantine_died(&b->quarantine, u->uid, u->reading, status);
		files_forget(b->files, child);
		targets_unwind_died(&b->targets, u);
		break;
	case CHILD_SHIP:
		if (child->is_leaving)
			delivery_ship_gone(&b->delivery, (struct ship *)child);
		break;
	case CHILD_KIND_N:
		break;
	}
}

static void on_instance_gone(void *ctx, struct instance *i)
{
	struct broker *b = ctx;

	discovery_gone(b->discovery, i);
	clients_forget(&b->clients, i);
}

void wiring_connect(struct broker *b)
{
	b->children.state = &b->state;
	b->children.events = (struct child_events){
		.ctx = b,
		.message = inbox_take,
		.started = on_started,
		.died = on_died,
	};
	b->delivery.state = &b->state;
	b->delivery.children = &b->children;
	b->targets.state = &b->state;
	b->targets.children = &b->children;
	b->targets.delivery = &b->delivery;
	b->targets.governor = &b->governor;
	b->targets.events = (struct target_events){.ctx = b, .instance_gone = on_instance_gone};
	b->clients.targets = &b->targets;
	b->records.targets = &b->targets;
}
