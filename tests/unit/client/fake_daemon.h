/*
 * A daemon for tests of the client library. The library never waits, so the test calls the library
 * and the functions of this daemon in one thread. A function that expects a connection or a message
 * fails the test if none arrives.
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

/* The path of the socket; a new one after each fake_end(). */
extern char fake_path[64];

/* Makes the socket and listens. */
void fake_listen(struct fake_daemon *d);
/* Listens, and connects the library, as a sampled process in trace mode. */
void fake_connect(struct fake_daemon *d);
/* Closes the connection and the socket, and removes the socket's path. */
void fake_stop(struct fake_daemon *d);
/* Calls fake_stop(), and removes the directory of the socket. */
void fake_end(struct fake_daemon *d);
/* Returns true if the library has connected and fake_accept() has not accepted that yet. */
bool fake_has_connection_request(struct fake_daemon *d);
/* Accepts the connection and receives its HELLO. */
void fake_accept(struct fake_daemon *d);
/* Answers HELLO with a page as the daemon makes it; the profiler of a sampled process is stopped.
 */
void fake_answer(struct fake_daemon *d, uint32_t lifecycle, bool is_sampled);
/* Receives the next request. */
struct protocol_request fake_receive(struct fake_daemon *d);
/* Checks that there is no request and that the connection has not ended. */
void fake_receive_nothing(struct fake_daemon *d);
/* Checks that the library has closed the connection. */
void fake_receive_end(struct fake_daemon *d);

#define FAKE_ID "0123456789abcdef0123456789abcdef"

#endif
