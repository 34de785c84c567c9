/*
 * The daemon's socket: connections, their limits, and their messages, which are checked here.
 * The requests are carried out by the functions of struct control_user; this module knows no
 * broker and no target.
 *
 * The module never waits for a peer. A peer that breaks a rule of lib/client/protocol.h, or
 * does not read its answers, loses its connection. Requests beyond the peer's allowance
 * (allowance.h) are read later.
 */
#ifndef DAEMON_BROKER_CONTROL_CONTROL_H
#define DAEMON_BROKER_CONTROL_CONTROL_H

#include <stdint.h>

#include "daemon/process/peer.h"
#include "lib/base/loop.h"
#include "lib/base/util.h"
#include "lib/client/protocol.h"

struct control;

/* A peer, from the answer to his HELLO until his connection ends. */
struct control_peer {
	struct peer is;
	uint32_t version; /* that both speak */
	void *user;	  /* NULL at first; whoever serves him may use it */
};

/* What a request came to. */
struct control_answer {
	struct protocol_answer m; /* all but its header, which is filled in */
	int fd;			  /* goes with it, and is closed; -1: none */
	uint32_t work;		  /* as allowance_use; 1 for what costs next to nothing */
};

/* result, and a line of why and what to do. */
void control_refuse(struct control_answer *ret, enum protocol_result result, const char *format,
		    ...) printf_like(3, 4);

struct control_user {
	/* A request, checked. *ret is all zeros, fd -1, work 1. */
	void (*ask)(void *ctx, struct control_peer *peer, const struct protocol_request *m,
		    struct control_answer *ret);
	/*
	 * He wants a page of his own (struct protocol_page): a memfd, which is
	 * closed once it is sent. Returns 0 or -errno: he gets none.
	 */
	int (*page)(void *ctx, struct control_peer *peer, int *ret_fd);
	/* His connection has ended. */
	void (*gone)(void *ctx, struct control_peer *peer);
};

/*
 * Listens at path (control_socket_open: its errors are ours). user and ctx are
 * kept; l must outlive it. own_uid is the daemon's.
 */
must_check int control_new(const char *path, const struct control_user *user, void *ctx,
			   uint32_t own_uid, struct control **ret);
/* Watches it from now on. Returns 0 or loop_add's error. */
must_check int control_start(struct control *c, struct loop *l);
/* Ends all connections, and takes the socket away. Takes NULL. */
void control_free(struct control *c);

/*
 * At every turn: reads the messages of peers whose allowance was used up, and frees
 * the connections that have ended. Allowances grow by now_ns, which never goes back.
 */
void control_check(struct control *c, uint64_t now_ns);

#endif
