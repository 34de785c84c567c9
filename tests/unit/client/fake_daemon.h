/*
 * The other side of the socket, in the hands of a test: the library never
 * waits, so both live in one thread. What is expected and does not come fails
 * the test.
 */
#ifndef TESTS_UNIT_CLIENT_FAKE_DAEMON_H
#define TESTS_UNIT_CLIENT_FAKE_DAEMON_H

#include <stdbool.h>

#include "lib/client/protocol.h"

struct fake_daemon {
	int listener, connection; /* -1: none */
	struct protocol_page *page;
	int page_fd;
};

/* Of the socket: another one after each fake_end. */
extern char fake_path[64];

void fake_listen(struct fake_daemon *d);
/* It listens, we are connected, sampled, and in trace mode. */
void fake_begin(struct fake_daemon *d);
/* Listens no more, and its connection is closed. */
void fake_go(struct fake_daemon *d);
/* That, and nothing is left of it. */
void fake_end(struct fake_daemon *d);
/* Somebody has connected. */
bool fake_is_called(struct fake_daemon *d);
/* Takes the connection and its HELLO. */
void fake_accept(struct fake_daemon *d);
/* Answers HELLO with a page as the daemon makes it; a sampled one is stopped.
 */
void fake_answer(struct fake_daemon *d, uint32_t lifecycle, bool is_sampled);
/* The next request. */
struct protocol_request fake_take(struct fake_daemon *d);
/* There is none, and the connection stands. */
void fake_take_nothing(struct fake_daemon *d);
/* The connection has ended. */
void fake_take_end(struct fake_daemon *d);

#define FAKE_ID "0123456789abcdef0123456789abcdef"

#endif
