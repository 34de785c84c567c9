/*
 * The broker's child processes: their state, messages to and from them, and their log lines.
 * There is one capture process, which takes samples. There is one unwind process for each owner key
 * (daemon/process/owner.h), which makes chunks of the samples, and one ship process for each DSN,
 * which sends the chunks. children.h starts the processes, reap.h handles their ends.
 *
 * A struct child outlives its process: if the process dies, a new one is started for the same
 * struct child. children_sweep() frees an unwind or a ship that the broker no longer needs. The
 * struct of capture exists as long as the broker.
 *
 * Other parts of the broker decide about targets, chunks and files. This module calls these parts
 * by the callbacks in struct child_events.
 *
 * The broker does not trust its children: a child that breaks a rule of daemon/msg/msg.h is killed.
 *
 * Times are by clock_mono_ns() unless a comment says otherwise.
 */
#ifndef DAEMON_BROKER_CHILDREN_CHILD_H
#define DAEMON_BROKER_CHILDREN_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/state/state.h"
#include "daemon/config/accounts.h"
#include "daemon/config/config.h"
#include "daemon/msg/msg.h"
#include "daemon/msg/msg_capture.h"
#include "daemon/msg/msg_ship.h"
#include "daemon/process/owner.h"
#include "lib/base/ipc.h"
#include "lib/base/loop.h"
#include "lib/base/util.h"
#include "proto/client_report.h"
#include "proto/dsn.h"

struct child;
struct child_log;
struct children;
struct rusage;

/* Resource usage. The member of struct child has that of the child's processes that have ended. */
struct usage {
	double cpu_s;	    /* processor time, the sum of all processes */
	uint64_t rss_bytes; /* the largest resident size of any of them */
};

enum child_kind {
	CHILD_CAPTURE,
	CHILD_UNWIND,
	CHILD_SHIP,
	CHILD_KIND_N,
};

/* The constant properties of a kind of child. */
struct child_type {
	enum child_kind kind;
	const char *name;     /* of the executable */
	const char *label;    /* in metrics: "capture" */
	const char *loss;     /* the consequence of its absence, for the log: "no chunk is made" */
	enum account account; /* the user and group of the process */
	/* Names of the environment variables that the process inherits; NULL ends the list. */
	const char *const *environment;
	/*
	 * Starts the process: sets pid, fd, source, log and state, and sends MSG_INIT. Returns 0 or
	 * -errno. After an error pid is 0, or the process was killed.
	 */
	int (*start)(struct child *child);
};
extern const struct child_type child_types[CHILD_KIND_N]; /* children.c */

/* The state of the newest process of a child. The end of that process does not change the state. */
enum child_state {
	CHILD_STARTS, /* never started, or MSG_READY has not arrived */
	CHILD_READY,  /* MSG_READY has arrived */
	CHILD_KILLED, /* killed by the broker, at killed_ns */
	CHILD_HUNG,   /* capture only: killed by the broker for an old heartbeat (watch.h) */
};

/* The state that all kinds of children have. */
struct child {
	const struct child_type *type;
	struct children *children; /* all children; constant */
	int32_t pid;		   /* 0: not running */
	int fd;			   /* the socket to the process; -1: none */
	struct loop_source *source;
	struct child_log *log; /* the pipe of child_log_open(); NULL: not running */
	struct usage usage;
	uint64_t started_ns; /* when the last process was started, or the start failed */
	uint64_t restart_ns; /* when a restart is due; 0: none is scheduled */
	enum child_state state;
	uint64_t killed_ns; /* when the broker killed the process (CHILD_KILLED, CHILD_HUNG) */
	/* The process was told to end. When it has ended, children_sweep() frees the child. */
	bool is_leaving;
	/*
	 * How many checks of deadlines.c in a row have found that the process has not sent
	 * MSG_READY, or that it still runs although it was told to end or its socket is closed.
	 */
	uint32_t overdue_checks;
	uint32_t failures; /* failures in a row (reap_child_failed) */
	/*
	 * messages_full_ns: when the token bucket of messages is full (child_on_readable,
	 * lib/base/token_bucket.h). is_slowed: the process has sent more than the limit, and its
	 * socket is paused.
	 */
	uint64_t messages_full_ns;
	bool is_slowed;
	/*
	 * What the governor (targets/governor.h) has last read: the pid of the process, and the
	 * processor time of that process since its start.
	 */
	int32_t governed_pid;
	uint64_t governed_cpu_ns;
	uint64_t governed_used_ns; /* processor time in the governor's last interval */
};

/*
 * The unwind process of one owner key: it unwinds the samples of all targets that have the key.
 * unwind gets the samples through a ring: memory into which capture writes registers and stacks. id
 * is the number of the ring.
 */
struct unwind {
	struct child child; /* the first member: its address is that of the struct unwind */
	uint32_t id;
	struct owner_key key;
	uint32_t newest_run; /* the largest id of a run that was given to this unwind */
	bool has_died;	     /* an earlier process of this struct unwind has ended */
	/*
	 * unwind's end of the link to capture: a socket pair for messages about the ring, whose
	 * other end capture has (children_make_ring). When capture has made the ring, the broker
	 * sends the ring and link_fd to the unwind process, and closes link_fd. -1: the present
	 * process awaits no ring.
	 */
	int link_fd;
	/*
	 * Rings that the present capture process was asked for and has not made yet. Only the ring
	 * of the last request is used.
	 */
	uint32_t rings_awaited;
	uint32_t ring_overdue_checks; /* checks of deadlines.c in a row that awaited a ring */
	/* A ring is to be requested once the process has opened the sessions of all its targets. */
	bool ring_due;
	uint32_t sessions_asked; /* MSG_SESSION_OPEN messages without an answer */
	uint64_t idle_since_ns;	 /* when a target last used the process (deadlines.c) */
	/* MSG_USAGE (usage of targets: targets/target_usage.h) was sent and has no answer. */
	bool usage_unanswered;
	const uint32_t *reading; /* the page that shows which file it reads (files/quarantine.h) */
};

/* The rate limit of a DSN (server_limit.h). */
struct server_limit {
	/* The server takes no profiles until this time, by clock_boot_ns(); 0: no limit. */
	uint64_t until_ns;
	bool stops_sampling; /* a hold (server_limit.h): nothing is sampled for this DSN */
	uint64_t since_ns;   /* the start of that hold, by state_now_ns() */
	uint64_t held_ns;    /* the length of the holds that have ended */
	uint64_t holds;	     /* the number of holds, the present one included */
	uint64_t full_ns;    /* when the token bucket of holds is full, by state_now_ns() */
};

/* The maximum number of ships, those of the options and of Spotlight included. */
#define SHIPS_MAX CONFIG_SHIPS_MAX

/*
 * The ship of one DSN. Each DSN has a ship of its own. So a server that does not answer delays no
 * chunks of other DSNs, and no ship knows the key of another DSN. Each ship also writes the files
 * of --output for its chunks. The first ship is for the DSN of the options (children.dsn). If the
 * options have no DSN, the first ship only writes files.
 */
struct ship {
	struct child child;	    /* the first member: its address is that of the struct ship */
	char dsn[MSG_DSN_MAX];	    /* "": nothing is sent */
	char label[DSN_LABEL_SIZE]; /* names the DSN's server in the log; "": no DSN */
	uint64_t spool_dsn;	    /* the number of the DSN in the spool; 0: no DSN */
	bool is_first;		    /* the ship of the options */
	bool is_spotlight;	    /* this is children.spotlight: dsn is the URL of Spotlight */
	struct server_limit limit;
	struct msg_denied denial; /* the last MSG_DENIED; status 0: the DSN is not refused */
	/*
	 * How far the server's clock is ahead of this host's, from MSG_CLOCK; negative: behind. 0
	 * before the first MSG_CLOCK of a process.
	 */
	int64_t clock_ahead_s;
	/* When the server last took a chunk, by clock_mono_ns(); 0: not yet. */
	uint64_t delivered_ns;
	/*
	 * The time of the last MSG_PROBE, if an inspection (control/inspect.h) started the ship and
	 * no run of the profiler has needed the ship since; 0 for every other ship.
	 */
	uint64_t only_probed_ns;
	bool probe_awaited;		/* its process owes MSG_PROBED */
	struct msg_probed probed;	/* the last MSG_PROBED; h.type is 0 before the first */
	struct spool_counts spool_past; /* of earlier processes; count and bytes are 0 */
	/* Of the present process. If it has ended: only what the spool holds (count, bytes). */
	struct spool_counts spool_now;
	int spool_error; /* the errno with which writing to the spool fails; 0: none */
	struct client_report unreported; /* losses not reported to its process yet */
	uint32_t ping_checks; /* checks of deadlines.c since MSG_READY or the last MSG_PONG */
	size_t n_in_flight;   /* envelopes in flight for this ship (delivery/) */
	size_t n_handed;      /* envelopes in flight that the process of the ship has */
};

enum restart_reason {
	RESTART_SIGNAL,	    /* a signal that the broker did not send ended the child */
	RESTART_STATUS,	    /* the child exited */
	RESTART_HEARTBEAT,  /* watch_kill_capture() killed the child */
	RESTART_MISBEHAVED, /* child_fail() killed it, because it broke a rule, for example */
	RESTART_REASON_N,
};

/* Numbers of restarts since the broker started (reap.h). */
struct restarts {
	uint64_t n[CHILD_KIND_N][RESTART_REASON_N];
};

/* State of watch.h. */
struct watch {
	uint64_t beat_ns;      /* the newest heartbeat seen; at first the start of capture */
	uint32_t stale_checks; /* checks since beat_ns that found no newer heartbeat */
	uint64_t checked_ns;   /* the time of the last check */
};

/*
 * Callbacks of this module, each called with ctx: functions of inbox.c and wiring.c, whose ctx is
 * the struct broker. started and died may be NULL.
 */
struct child_events {
	void *ctx;
	/*
	 * The child has sent a message after its MSG_READY. The callee checks the message against
	 * its rule and handles it. The caller then closes the descriptors that are left in m.
	 */
	void (*message)(void *ctx, struct child *child, struct ipc_message *m);
	/* The process of the child was started, and MSG_INIT was sent to it. */
	void (*started)(void *ctx, struct child *child);
	/* The process of the child has ended, with this status of wait(2). A restart may follow. */
	void (*died)(void *ctx, struct child *child, int status);
	/*
	 * A process without a struct child that the broker has forked, such as a helper, has ended.
	 * status and usage are those of wait4(2).
	 */
	void (*other_ended)(void *ctx, int32_t pid, int status, const struct rusage *usage);
};

/*
 * All children, and totals of those that were freed. All zeros at first, except what wiring.h and
 * children_init() set, and ship_fds, which are -1.
 */
struct children {
	struct state *state;
	struct child_events events;

	/* The configuration of ships. */
	bool has_dsn;			     /* a DSN is configured: chunks are sent */
	char dsn[MSG_DSN_MAX];		     /* the DSN of the options; "": none */
	char spotlight_url[CONFIG_TEXT_MAX]; /* constant; "": Spotlight is off */
	int ship_fds[INIT_FILE_N];	     /* by enum init_file (ship.h); -1: no file */

	struct child capture;
	const struct heartbeat *heartbeat; /* of the newest capture; NULL before the first */
	struct watch watch;
	bool capture_done; /* the broker ends, and capture has sent MSG_CAPTURE_DONE */

	/* One place for each target that there can be, since each can need its own process. */
	struct unwind *unwinds[HEARTBEAT_SLOTS];
	size_t n_unwinds;
	struct usage unwinds_gone; /* usage of the unwind processes that were freed */

	struct ship *ships[SHIPS_MAX];
	size_t n_ships;
	/*
	 * One of ships: the ship of Spotlight, Sentry's viewer on a developer's machine, which gets
	 * a copy of each chunk and has no spool. NULL: Spotlight is off.
	 */
	struct ship *spotlight;
	/* Sums of the ships that were freed. limits_gone: only holds and held_ns are set. */
	struct usage ships_gone;
	struct spool_counts spool_gone;
	struct server_limit limits_gone;

	struct restarts restarts;
	bool has_worked[CHILD_KIND_N]; /* a child of this kind has sent MSG_READY */
};

/*
 * Returns child number i, for loops over all children: capture first, then ships, then unwinds.
 * NULL: i is not less than the number of children.
 */
struct child *child_at(struct children *c, size_t i);

/*
 * Returns true if the child has no process and no restart is scheduled, for example because its
 * executable is of another version. Also true before the first start.
 */
static inline bool child_is_over(const struct child *child)
{
	return child->pid == 0 && child->restart_ns == 0;
}

/* Returns true if the child would be restarted if it ended now. */
bool child_is_wanted(const struct child *child);

/*
 * Kills the process of a child that broke a rule or missed a deadline, and closes its socket. Logs
 * a line: why follows the child's name in it ("does not answer"). Has no effect if the child does
 * not run or was killed before.
 */
void child_fail(struct child *child, const char *why);

/*
 * Counts and logs (resource_shortage_note) that a lack of descriptors, processes or memory delays
 * an operation on the child. what: the operation, such as "the start of"; the child's name follows
 * it in the log line. error: a positive errno.
 */
void child_note_shortage(const struct child *child, const char *what, int error);
/*
 * Kills a child without a log line. The socket stays open until the process has ended. Returns
 * true; or false, and has no effect, if the child does not run or was killed before.
 */
bool child_kill(struct child *child);
/*
 * Sends a message of size bytes with n_fds descriptors, which stay the caller's. If the kernel is
 * short of memory or has too many descriptors in flight, tries again for at most 31 ms, in which
 * the broker sleeps. Calls child_fail() if all tries fail, if the child's socket has no room, or
 * after any other error. Has no effect if the socket is closed or the child has ended.
 */
void child_send(struct child *child, const void *message, size_t size, const int *fds,
		size_t n_fds);
/* Sends a struct msg_id by child_send(). */
void child_send_id(struct child *child, enum msg_type type, uint32_t id);
/*
 * Reads and handles one message of a child. This is the loop_fn (lib/base/loop.h) of the child's
 * socket; ctx is the struct child. The first message has to be MSG_READY; all others go to
 * events.message. Calls child_fail() if the message breaks a rule, and child_close() if the child
 * has closed its end: an honest child then exits.
 *
 * Messages have a rate limit, because a child that was taken over may send messages without end,
 * and each costs the broker some microseconds. The limit is CHILD_MESSAGES_HZ, or
 * CAPTURE_MESSAGES_HZ for capture, which reports forks and execs of targets. When a child exceeds
 * its limit, the broker pauses the socket until child_check_slowed() finds that the limit allows
 * more messages. An honest child stays below its limit, except for short bursts.
 */
void child_on_readable(void *ctx);
#define CHILD_MESSAGES_HZ   4000
#define CAPTURE_MESSAGES_HZ 20000
/*
 * Resumes the socket if child_on_readable() has paused it and the limit allows more messages.
 * Called at every turn.
 */
void child_check_slowed(struct child *child);
/*
 * Handles the messages that a child sent before its end, and closes its socket. Call this function
 * before wait(2) frees the child's pid: if a message breaks a rule, the broker kills the process
 * with that pid.
 */
void child_read_last(struct child *child);
/* Closes the socket to the child. The child exits when it reads the end of the socket. */
void child_close(struct child *child);

/*
 * The next two functions relay the lines that children write to stderr to the broker's log. The
 * stderr of each process is a pipe to the broker, for two reasons. Only the broker can write to its
 * own stderr without waiting for the reader (daemon/common/log_output.h). And unwind and ship parse
 * data of targets or servers, so an attacker may have taken over one of them. The broker escapes
 * each line, puts the child's name before it, and logs at most LOG_RELAY_LINES lines a minute of
 * each program (log_relay() in daemon/common/log.h). When a line is suppressed, the broker stops
 * reading the pipe for about a second. An unwind or ship process that fills the pipe meanwhile
 * blocks in write(2). capture does not, since it may have a thread stopped: it loses lines, and
 * counts them.
 *
 * child_log_open() makes the pipe for a process that is about to be started, and reads its lines
 * from now on. *ret_fd is the end of the pipe for the process's stderr; the caller closes it after
 * the start. Returns 0; or -errno, and nothing is open.
 */
must_check int child_log_open(struct child *child, int *ret_fd);
/*
 * Logs the lines that are left in the pipe, and closes the pipe. Call this function when the
 * process has ended. Has no effect if the child has no pipe.
 */
void child_log_close(struct child *child);

#endif
