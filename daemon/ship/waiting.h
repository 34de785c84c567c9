/*
 * Envelopes that wait in memory for their turn, bounded in number and in bytes:
 * payloads lie in memory.
 */
#ifndef DAEMON_SHIP_WAITING_H
#define DAEMON_SHIP_WAITING_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/msg/msg_ship.h"
#include "daemon/ship/sending.h"

/* Some minutes of a dozen targets, if the server is slow. */
#define WAITING_MAX	  32
#define WAITING_BYTES_MAX (256u << 20)
_Static_assert(WAITING_MAX >= MSG_ENVELOPES_MAX, "the broker would overflow it");

/* All 0: none. */
struct waiting {
	struct sending *oldest_first[WAITING_MAX];
	size_t n;
	uint64_t bytes;
};

bool waiting_has_room(const struct waiting *w, const struct sending *s);

/* There is room. As the newest, or as the oldest. */
void waiting_add(struct waiting *w, struct sending *s);
void waiting_put_back(struct waiting *w, struct sending *s);

/* The oldest, which there is; it waits no more. */
struct sending *waiting_take(struct waiting *w);

#endif
