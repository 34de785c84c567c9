/*
 * Chunks that do not arrive: counted with their reason for the figures, and
 * where ship does not know of them, told to it, which tells the server.
 */
#include "daemon/broker/delivery/loss.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/children/socket.h"
#include "daemon/msg/discard.h"

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
	const enum envelope_kind kind =
		i->broker->options.transaction != NULL ? ENVELOPE_V1 : ENVELOPE_CHUNK;

	i->past.chunks.discarded[reason]++;
	if (s->dsn[0] == '\0')
		return;
	s->untold.quantity[kind][discard_report(reason)]++;
	loss_tell(s);
}
