/*
 * Chunks that do not arrive: counted with their reason for the figures, and
 * where ship does not know of them, told to it, which tells the server.
 */
#include "daemon/broker.h"
#include "daemon/child.h"
#include "proto/profile.h"

static const struct {
	const char *name;
	enum client_report_reason report;
} reasons[DISCARD_N] = {
#define X(reason, name, report) [reason] = {name, CLIENT_REPORT_##report},
	DISCARD_LIST(X)
#undef X
		/* No thread has two samples: Sentry's word for it. */
		[PROFILE_NO_SAMPLES] = {"insufficient_data",
					CLIENT_REPORT_INSUFFICIENT_DATA},
};

const char *discard_name(uint32_t reason)
{
	if (reason < DISCARD_N && reasons[reason].name != NULL)
		return reasons[reason].name;
	return profile_fault_name((enum profile_fault)reason);
}

/* Sentry has fewer words. */
static enum client_report_reason report_reason(uint32_t reason)
{
	return reasons[reason].name != NULL ? reasons[reason].report
					    : CLIENT_REPORT_INTERNAL_SDK_ERROR;
}

static void tell(struct ship *s, uint32_t kind, uint32_t reason)
{
	uint64_t *quantity = &s->untold.quantity[kind][reason];
	const struct msg_lost m = {
		.h = MSG_HEADER(MSG_LOST),
		.quantity = *quantity,
		.reason = reason,
		.kind = kind,
	};

	if (m.quantity == 0 || s->child.fd < 0)
		return;
	*quantity = 0;
	child_send(&s->child, &m, sizeof(m), NULL, 0);
}

void loss_tell(struct ship *s)
{
	for (uint32_t kind = 0; kind < ENVELOPE_KIND_N; kind++)
		for (uint32_t i = 0; i < CLIENT_REPORT_REASON_N; i++)
			tell(s, kind, i);
}

void loss_count(struct instance *i, struct ship *s, uint32_t reason)
{
	const enum envelope_kind kind = i->broker->options.transaction != NULL
						? ENVELOPE_V1
						: ENVELOPE_CHUNK;

	i->past.chunks.discarded[reason]++;
	if (s->dsn[0] == '\0')
		return;
	s->untold.quantity[kind][report_reason(reason)]++;
	loss_tell(s);
}
