/*
 * The other processes of the daemon, which are children of the broker: what the broker
 * knows of each, and the messages to and from it. There is one capture, one unwind process
 * for each uid that has targets, and one ship for each DSN. children.h starts them, reap.h
 * deals with their ends.
 *
 * Decisions about targets, chunks and files belong to other parts of the broker. The broker's
 * root carries them out when it is called by struct child_events.
 *
 * A child is not trusted: one that breaks a rule of daemon/msg/msg.h is killed.
 */
#ifndef DAEMON_BROKER_CHILDREN_CHILD_H
#define DAEMON_BROKER_CHILDREN_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/state/state.h"
#include "daemon/config/accounts.h"
#include "daemon/config/config.h"
#include "daemon/msg/heartbeat.h"
#include "daemon/msg/msg.h"
#include "daemon/msg/msg_ship.h"
#include "lib/base/ipc.h"
#include "lib/base/loop.h"
#include "lib/base/util.h"
#include "proto/client_report.h"
#include "proto/dsn.h"

struct child;
struct children;

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
};
extern const struct child_type child_types[CHILD_KIND_N]; /* children.c */

enum child_state {
	CHILD_STARTS, /* or does not run */
	CHILD_READY,  /* it has said so */
	CHILD_KILLED, /* by the broker, at killed_ns */
	CHILD_SILENT, /* killed by the broker: it shows no heartbeat */
};

struct child {
	const struct child_type *type;
	struct children *children; /* all of them; does not change */
	int32_t pid;		   /* 0: not running */
	int fd;			   /* -1: not running */
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
	int link_fd;		/* its end of the socket to capture, until the ring is made; -1 */
	uint32_t rings_awaited; /* of this capture; the last one counts */
	bool ring_due;		/* a ring is to be made when it knows all its targets */
	uint32_t sessions_asked;
	uint64_t idle_since_ns;	 /* no target has used it since (idle.c) */
	bool measures_asked;	 /* and not answered yet */
	const uint32_t *reading; /* its page: files/quarantine.h */
};

/* The rate limit of a DSN: until when its server takes no profiles (limit.h). */
struct limit {
	uint64_t until_ns; /* by clock_boot_ns; 0: never */
	bool holds;	   /* nothing is to be sampled because of it, */
	uint64_t since_ns; /* by state_now_ns */
	uint64_t paused_ns, pauses;
};

/* DSNs; each has a ship, which is a process. */
#define SHIPS_MAX 32

/*
 * One for each DSN, so that a server which stalls holds up chunks of no other DSN, and no
 * ship knows another's key. The first is that of the options, which may have no DSN: then it
 * writes files only, as all of them do.
 */
struct ship {
	struct child child;	    /* the first member, so that a struct child leads here */
	char dsn[MSG_DSN_MAX];	    /* "": nothing is sent */
	char place[DSN_LABEL_SIZE]; /* of the DSN's server, for a person; "" */
	uint64_t spool_dsn;	    /* MSG_INIT */
	bool is_first;
	bool is_spotlight; /* dsn is the URL of one: children.spotlight */
	struct limit limit;
	int64_t clock_ahead_s;	  /* its server's: MSG_CLOCK */
	uint64_t delivered_ns;	  /* a chunk last, by clock_mono_ns; 0: none yet */
	int32_t probe_pid;	  /* which process of the ship owes MSG_PROBED; 0: none does */
	struct msg_probed probed; /* the ship's answer; its type is 0 before the first */
	struct spool_counts spool_past; /* of processes that died */
	struct spool_counts spool_now;
	struct client_report untold; /* lost, and it does not know of them */
	size_t n_envelopes;	     /* in flight that it is to deliver (delivery/), */
	size_t n_handed;	     /* and those of them that its process has */
};

enum restart_reason {
	RESTART_SIGNAL,	   /* a signal that was not the broker's ended it */
	RESTART_STATUS,	   /* it ended by itself */
	RESTART_HEARTBEAT, /* it showed none, and was killed */
	RESTART_DISMISSED, /* it broke a rule, and was killed */
	RESTART_REASON_N,
};

/* How often children were started again, over the whole run: restarts.h. */
struct restarts {
	uint64_t n[CHILD_KIND_N][RESTART_REASON_N];
};

/* What watch.h knows of capture's heartbeat. */
struct watch {
	uint64_t beat_ns; /* the newest that was seen */
	uint32_t looks;	  /* that found no newer one, */
	uint64_t look_ns; /* and when the last of these was */
};

/* Callbacks of the broker's root. started and died may be NULL. */
struct child_events {
	void *ctx;
	/* A message after MSG_READY: checks it against its rule, and carries it out. */
	void (*message)(void *ctx, struct child *child, struct ipc_message *m);
	/* A process was started, and has got MSG_INIT. */
	void (*started)(void *ctx, struct child *child);
	/* The process has ended with this status of wait(2); another may be started later. */
	void (*died)(void *ctx, struct child *child, int status);
};

/* All children, and what was kept of those that were freed. */
struct children {
	struct state *state;
	struct child_events events;

	/* What ships are started with. */
	bool has_dsn;			     /* there is a DSN, and chunks are sent */
	char dsn[MSG_DSN_MAX];		     /* of the options; "" */
	char spotlight_url[CONFIG_TEXT_MAX]; /* does not change; "": Spotlight is off */
	int ship_fds[INIT_FILE_N];	     /* ship.h; -1: none */

	struct child capture;
	const struct heartbeat *heartbeat; /* of the newest capture; NULL before the first */
	struct watch watch;
	bool capture_done; /* it said so, or was not needed any more */

	struct unwind *unwinds[HEARTBEAT_SLOTS];
	size_t n_unwinds;
	struct usage unwinds_gone; /* of those that were freed */

	struct ship *ships[SHIPS_MAX];
	size_t n_ships;
	/*
	 * The ship of Spotlight, Sentry's viewer on the developer's machine, which gets a
	 * copy of each chunk, without a spool. NULL: Spotlight is off.
	 */
	struct ship *spotlight;
	struct usage ships_gone;	/* of those that were freed, */
	struct spool_counts spool_gone; /* their spools, */
	struct limit limits_gone;	/* and their limits: pauses, paused_ns */

	struct restarts restarts;
	bool has_worked[CHILD_KIND_N]; /* a child of this kind was ready once */
};

/*
 * For a loop over all children: the i-th one. Capture comes first, then ships,
 * then unwinds. NULL: there are not so many.
 */
struct child *child_at(struct children *c, size_t i);

/* If the child ended now, would it be replaced by another? */
bool child_is_wanted(const struct child *child);

/* A child cannot be trusted any more, or does not read: it is killed. Logs why. */
void child_fail(struct child *child, const char *why);
/*
 * The same without a log line: the child's socket is open until its end. Returns
 * false where it does not run, or was killed before.
 */
bool child_kill(struct child *child);
/* Sends, or fails the child. A child that is not running gets nothing. */
void child_send(struct child *child, const void *message, size_t size, const int *fds,
		size_t n_fds);
/* child_send of a struct msg_id. */
void child_tell(struct child *child, enum msg_type type, uint32_t id);
/* A loop_fn of its socket: takes one message. */
void child_on_readable(void *ctx);
/*
 * Takes the messages that a child sent before it ended, and closes its socket.
 * To be called before wait(2) frees the child's pid: a message that breaks a
 * rule kills that pid.
 */
void child_take_last(struct child *child);
void child_close(struct child *child);

#endif
