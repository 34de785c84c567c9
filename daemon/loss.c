/*
 * Chunks that do not arrive: counted with their reason for the figures, and
 * where ship does not know of them, told to it, which tells the server.
 */
#include "daemon/broker.h"
#include "daemon/child.h"
#include "proto/profile.h"

const char *discard_name(uint32_t reason)
{
	switch ((enum discard)reason) {
	case DISCARD_MEMORY:
		return "internal_sdk_error";
	case DISCARD_TOO_LARGE:
		return "too_large";
	case DISCARD_NETWORK_ERROR:
		return "network_error";
	case DISCARD_SEND_ERROR:
		return "send_error";
	case DISCARD_RATE_LIMITED:
		return "ratelimit_backoff";
	case DISCARD_QUEUE_OVERFLOW:
		return "queue_overflow";
	case DISCARD_WRITE_ERROR:
		return "write_error";
	case DISCARD_SHUTDOWN:
		return "shutdown";
	case DISCARD_UNWIND_DIED:
		return "unwind_died";
	case DISCARD_EXEC_BUDGET:
		return "exec_budget";
	case DISCARD_N:
		break;
	}
	/* No thread has two samples: Sentry's word for it. */
	if (reason == PROFILE_NO_SAMPLES)
		return "insufficient_data";
	return profile_fault_name((enum profile_fault)reason);
}

/* Sentry has fewer words. */
static enum client_report_reason report_reason(uint32_t reason)
{
	if (reason == PROFILE_NO_SAMPLES)
		return CLIENT_REPORT_INSUFFICIENT_DATA;
	if (reason == DISCARD_QUEUE_OVERFLOW)
		return CLIENT_REPORT_QUEUE_OVERFLOW;
	if (reason == DISCARD_EXEC_BUDGET)
		return CLIENT_REPORT_BACKPRESSURE;
	return CLIENT_REPORT_INTERNAL_SDK_ERROR;
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
