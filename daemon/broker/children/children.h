/*
 * The other processes of the daemon, which are children of the broker: what it knows of
 * each, and their start. Capture is one; there is an unwind for each uid that has
 * targets, and a ship for each DSN. How they end stands in reap.h, how they are talked
 * with in socket.h.
 */
#ifndef DAEMON_BROKER_CHILDREN_CHILDREN_H
#define DAEMON_BROKER_CHILDREN_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/delivery/limit.h"
#include "daemon/config/accounts.h"
#include "daemon/msg/msg_ship.h"
#include "lib/base/ipc.h"
#include "lib/base/loop.h"
#include "lib/base/util.h"
#include "proto/client_report.h"
#include "proto/dsn.h"

struct broker;
struct child;

/* What a process has used, over all its lives. */
struct usage {
	double cpu_s;
	uint64_t rss_bytes;
};

enum child_kind {
	CHILD_CAPTURE,
	CHILD_UNWIND,
	CHILD_SHIP,
	CHILD_KIND_N,
};

/* What a kind of child is. */
struct child_type {
	enum child_kind kind;
	const char *name;  /* of its executable */
	const char *label; /* of its figures */
	const char *loss;  /* what the log says is lost without it */
	enum account account;
	const char *const *environment; /* variables that it inherits; NULL */
	int (*start)(struct child *child);
	/* Its rule for each message after MSG_READY. */
	void (*on_message)(struct child *child, struct ipc_message *m);
};
extern const struct child_type child_types[CHILD_KIND_N]; /* children.c */

enum child_state {
	CHILD_STARTS, /* or does not run */
	CHILD_READY,  /* it has said so */
	CHILD_KILLED, /* by us, at killed_ns */
	CHILD_SILENT, /* killed by us: it shows no heartbeat */
};

struct child {
	const struct child_type *type;
	struct broker *broker;
	int32_t pid; /* 0: not running */
	int fd;	     /* -1: not running */
	struct loop_source *source;
	struct usage usage;
	uint64_t started_ns;
	uint64_t restart_ns; /* when it is due to be started again; 0: no */
	enum child_state state;
	uint64_t killed_ns;
	bool is_leaving;      /* is to end: freed then, by children_sweep */
	uint32_t owed_looks;  /* overdue.c: at which it owed its end */
	uint32_t failures;    /* ends in a row, each soon after its start */
	int32_t governed_pid; /* whose processor time the governor has seen */
	uint64_t governed_ns; /* and how much of it */
};

/* One for each uid whose processes are profiled; its ring has its number. */
struct unwind {
	struct child child; /* the first member, so that a struct child leads here */
	uint32_t id;
	uint32_t uid;
	int link_fd;		/* its end of the socket to capture, until the ring is made
				 */
	uint32_t rings_awaited; /* of this capture; the last one counts */
	bool ring_due;		/* a ring is to be made when it knows all its targets */
	uint32_t sessions_asked;
	uint64_t idle_since_ns;	 /* it has served nobody since (idle.c) */
	bool measures_asked;	 /* and not answered yet */
	const uint32_t *reading; /* its page: the number of a file, or 0 */
};

/*
 * One for each DSN, so that a server which stalls holds up nobody else's
 * chunks, and none knows another's key. The first is that of the options, which
 * may be nowhere: then it writes files only, as all of them do.
 */
struct ship {
	struct child child;	    /* the first member, so that a struct child leads here */
	char dsn[MSG_DSN_MAX];	    /* "": nothing is sent */
	char place[DSN_LABEL_SIZE]; /* of the DSN's server, for a person; "" */
	uint64_t spool_dsn;	    /* MSG_INIT */
	bool is_first;
	bool is_spotlight; /* dsn is the URL of one: b->spotlight.ship */
	struct limit limit;
	int64_t clock_ahead_s;	  /* its server's: MSG_CLOCK */
	uint64_t delivered_ns;	  /* a chunk last, by clock_mono_ns; 0: none yet */
	int32_t probe_pid;	  /* which process of the ship owes MSG_PROBED; 0: none does */
	struct msg_probed probed; /* the ship's answer; its type is 0 before the first */
	struct spool_counts spool_past; /* of processes that died */
	struct spool_counts spool_now;
	struct client_report untold; /* lost, and it does not know of them */
	size_t n_handed;	     /* envelopes that it has */
};

void children_init(struct broker *b);
must_check int children_start(struct broker *b);
/*
 * The unwind process of a uid, made if there is none. One that cannot be
 * started now is started later. -ENOMEM, or -EAGAIN: others have to end first.
 */
must_check int children_unwind(struct broker *b, uint32_t uid, struct unwind **ret);
/*
 * The ship process of a DSN, made if there is none, whatever text names the
 * DSN. One that cannot be started now is started later. -ENOSPC: the
 * configuration has too many DSNs; -EAGAIN: another ship has to end first;
 * -ENOMEM.
 */
must_check int children_ship(struct broker *b, const char *dsn, struct ship **ret);
/* Would children_ship return s for this DSN? */
bool ship_is_for(const struct ship *s, const char *dsn);
/* Capture is asked for its ring, and it gets it when that is made. */
must_check int unwind_make_ring(struct broker *b, struct unwind *u);
/*
 * For a loop over all children: the i-th one. Capture comes first, then ships,
 * then unwinds. NULL: there are not so many.
 */
struct child *child_at(struct broker *b, size_t i);
/*
 * At the end of a turn, after instances_sweep: frees the unwinds and ships that
 * were to leave and have ended. The only place that takes one out of its list.
 */
void children_sweep(struct broker *b);
/* Several times a second: heartbeat, restarts that are due. */
void children_check(struct broker *b);

#endif
