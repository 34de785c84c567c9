/*
 * The daemon's socket: accepts connections, limits their number and work (user_quota.h), and reads
 * and checks their messages. The struct control_handler of the caller (requests.h) carries out the
 * requests; this module knows nothing of the broker and its targets.
 *
 * The module never waits for a peer. A peer that breaks a rule of lib/client/protocol.h, or whose
 * socket is full because the peer reads no answers, is disconnected. While the quota of a user is
 * used up, requests of that user stay in the queues of their connections.
 *
 * The handler may defer the answer to a request. Until the answer, the module does not read that
 * connection. So a connection has at most one deferred request, and answers have the order of the
 * requests. If the peer disconnects meanwhile, the module notices that only when it sends the
 * answer.
 */
#ifndef DAEMON_BROKER_CONTROL_CONTROL_H
#define DAEMON_BROKER_CONTROL_CONTROL_H

#include <stdint.h>

#include "daemon/process/peer.h"
#include "lib/base/loop.h"
#include "lib/base/util.h"
#include "lib/client/protocol.h"

struct control;

/*
 * A peer: the process at the other end of a connection. The handler gets the same pointer for all
 * requests of a connection, from its HELLO until gone().
 */
struct control_peer {
	struct peer identity; /* the process, its user, and its rights */
	uint32_t version;     /* the lower one of the peer's protocol version and the daemon's */
	void *handler_data;   /* NULL at first; only the handler uses it */
};

/* The answer to a request. The peer gets no answer to a request with the tag 0. */
struct control_answer {
	struct protocol_answer m; /* control.c fills in the header and the version */
	int fd;			  /* sent with the answer and then closed; -1: none */
	uint32_t work;		  /* the cost for user_quota_use(); 1 for a small request */
	bool is_deferred;	  /* no answer yet: control_check() calls again() */
	uint64_t note;		  /* any value of the handler; the next again() gets it back */
};

/*
 * Sets the result of an answer, and its text: the reason and what the user can do. format: of
 * printf(3); a text that is too long is cut off.
 */
void control_refuse(struct control_answer *ret, enum protocol_result result, const char *format,
		    ...) printf_like(3, 4);

/* The functions that carry out requests. ctx is that of control_new(). */
struct control_handler {
	/*
	 * Carries out a request that control_message_check() has accepted, and sets *ret.
	 * Before the call *ret has PROTOCOL_OK, fd -1, work 1 and zeros in the other members.
	 */
	void (*request)(void *ctx, struct control_peer *peer, const struct protocol_request *m,
			struct control_answer *ret);
	/*
	 * Goes on with a request that the handler deferred, waited_ns after request() was called.
	 * *ret is as for request(), but with the note that the last call has set.
	 */
	void (*again)(void *ctx, struct control_peer *peer, const struct protocol_request *m,
		      uint64_t waited_ns, struct control_answer *ret);
	/*
	 * Makes a page (struct protocol_page) for a peer whose HELLO asks for one. *ret_fd is the
	 * page's memfd, which control.c sends and closes. Returns 0; or -errno: then the peer gets
	 * PROTOCOL_FAILED and no page.
	 */
	int (*page)(void *ctx, struct control_peer *peer, int *ret_fd);
	/*
	 * The connection has ended: the handler must not use *peer after this call. Not called for
	 * a connection that has sent no HELLO.
	 */
	void (*gone)(void *ctx, struct control_peer *peer);
};

/*
 * Makes the socket at path. handler and ctx must stay valid as long as *ret. own_uid: the daemon's
 * uid. If the daemon runs as root, every user may connect; otherwise only that user and root may.
 * Returns 0, -ENOMEM or an error of control_socket_open().
 */
must_check int control_new(const char *path, const struct control_handler *handler, void *ctx,
			   uint32_t own_uid, struct control **ret);
/* Accepts connections in the loop l, which must outlive c. Returns 0 or an error of loop_add(). */
must_check int control_start(struct control *c, struct loop *l);
/* Removes the socket and ends all connections; calls gone() for their peers. c may be NULL. */
void control_free(struct control *c);

/*
 * To be called at every turn: goes on with deferred requests, reads from a connection again when
 * the quota of its user has grown, and frees the connections that have ended. now_ns:
 * CLOCK_MONOTONIC, by which quotas grow.
 */
void control_check(struct control *c, uint64_t now_ns);

#endif
