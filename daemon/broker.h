/*
 * The broker's state, shared by its parts and by nobody else:
 *   profd.c     main: start, the loop
 *   ship_files.c  what ship reads and writes
 *   finish.c    the end
 *   broker.c    a turn of the loop, and its clock
 *   pause.c     SIGTSTP and SIGCONT
 *   limit.c     the server's limits
 *   children.c  starts and restarts the other processes
 *   socket.c    talks with them
 *   reap.c      takes note of their ends
 *   watch.c     the heartbeat of capture
 *   inbox.c     what capture and unwind say
 *   targets.c   the processes that are profiled
 *   past.c      what was kept of, and lost with, children that died
 *   refusal.c   the lines for those that cannot be
 *   delivery.c  chunks on their way to files and to Sentry
 *   loss.c      those that do not arrive
 *   stats.c     the figures of the run
 *   governor.c  keeps all of them within the CPU budget
 *   usage.c     of these, processor time and memory
 *   service.c   what a service manager is told
 *
 * Single-threaded, one broker per process; a call never waits for a child.
 */
#ifndef DAEMON_BROKER_H
#define DAEMON_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/files.h"
#include "daemon/governor.h"
#include "daemon/heartbeat.h"
#include "daemon/msg.h"
#include "daemon/notify.h"
#include "daemon/options.h"
#include "daemon/output.h"
#include "daemon/patience.h"
#include "lib/base/loop.h"
#include "proto/client_report.h"

struct broker;

/* What a process has used, over all its lives. */
struct usage {
	double cpu_s;
	uint64_t rss_bytes;
};

struct child {
	struct broker *broker;
	const char *name;
	int32_t pid; /* 0: not running */
	int fd;	     /* -1: not running */
	struct loop_source *source;
	void (*on_message)(struct child *child, struct ipc_message *m);
	struct usage usage;
	uint64_t started_ns;
	uint64_t restart_ns;  /* when it is due to be started again; 0: no */
	uint64_t killed_ns;   /* when we killed it; 0: we did not */
	uint32_t failures;    /* ends in a row, each soon after its start */
	bool is_ready;	      /* it has said so */
	bool was_ready;	      /* it, or one in its place before */
	int32_t governed_pid; /* whose processor time the governor has seen */
	uint64_t governed_ns; /* and how much of it */
};

/* One for each uid whose processes are profiled; its ring has its number. */
struct unwind {
	struct child child; /* the first member: a child of these is one */
	uint32_t id;
	uint32_t uid;
	int link_fd; /* its end of the socket to capture, until the ring is made
		      */
	uint32_t rings_awaited; /* of this capture; the last one counts */
	bool ring_due;		/* when it knows of all its targets */
	uint32_t sessions_asked;
};

enum target_phase {
	TARGET_WAITING,	 /* to be attached */
	TARGET_PROFILED, /* attached */
	TARGET_CLOSING,	 /* no more records will come but those in the ring */
	TARGET_CLOSED,	 /* its last chunk is made */
};

/* A target's session in the unwind process that runs. */
enum session {
	SESSION_NONE,
	SESSION_ASKED, /* it has been told, and has not answered */
	SESSION_OPEN,
};

#define DISCARD_REASONS_MAX 32

struct chunk_counts {
	uint64_t made;
	uint64_t written;
	uint64_t unwritten; /* there should have been a file, and is none */
	uint64_t sent;
	uint64_t spooled; /* to be sent later, perhaps by another daemon */
	uint64_t discarded[DISCARD_REASONS_MAX]; /* by enum discard */
};

/* Why a chunk does not arrive; the first ones are enum profile_fault. */
enum discard {
	DISCARD_MEMORY = 20,
	DISCARD_TOO_LARGE,
	DISCARD_NETWORK_ERROR,
	DISCARD_SEND_ERROR,
	DISCARD_RATE_LIMITED,
	DISCARD_QUEUE_OVERFLOW,
	DISCARD_WRITE_ERROR,
	DISCARD_SHUTDOWN,
	DISCARD_UNWIND_DIED,
	DISCARD_N
};

/* What the governor knows of a target. */
struct governed {
	struct governor_cost cost;
	uint64_t cost_ns, captured; /* of its counters at the last look */
	uint32_t lowest_hz;
	uint64_t lowered_ns;  /* how long its rate was lowered */
	uint64_t exceeded_ns; /* and all at their lowest were still too much */
};

struct target {
	uint32_t id;
	int32_t pid;
	int pidfd;
	uint32_t uid;
	uint32_t slot;
	struct unwind *unwind; /* NULL: not started, it gets no messages */
	enum target_phase phase;
	enum session session;
	bool attach_due; /* capture is to be told of it then */
	bool attached_once;
	bool left_out;	 /* it made capture or the helper hang */
	bool short_told; /* that there are too few descriptors for it */
	int attach_error;
	uint64_t retry_ns; /* waiting for another tracer's end: look again then;
			      0: it has none */

	/* Of capture processes that are gone; the last one's is in its page. */
	struct capture_counters past;
	uint64_t missed_no_capture; /* while there was none, or it died */
	uint64_t dead_ns;	    /* when the last one died; 0: it lives */
	uint64_t dead_threads;

	struct msg_unwind_stats unwind_past; /* of unwind processes that died */
	struct msg_unwind_stats unwind_now;
	struct chunk_counts chunks;
	uint64_t payload_bytes; /* of its chunks that went on to ship */

	uint32_t rate_hz; /* that it is sampled at */
	struct governed governed;
};

/* The server takes no profiles (limit.c). */
enum limit_phase {
	LIMIT_NONE,
	LIMIT_BEGINS, /* capture is to end, and to stay so */
	LIMIT_HOLDS,  /* it has, and all targets run alone */
};

struct limit {
	enum limit_phase phase;
	uint64_t until_ns; /* by clock_boot_ns; 0: never */
	uint64_t since_ns; /* by broker_now_ns: the pause that there is */
	uint64_t paused_ns, pauses;
	struct patience patience; /* with capture */
};

struct envelope; /* delivery.c */

struct broker {
	struct options options;
	struct loop *loop;
	struct files *files;
	struct output output;
	int stats_fd; /* -1: none */
	struct notify notify;
	bool privileged;
	bool has_dsn;
	char dsn[MSG_DSN_MAX];

	struct child capture;
	struct heartbeat *heartbeat;
	uint64_t last_beat_ns; /* its newest, as far as we have seen */
	uint32_t beat_looks;   /* that found no newer one, */
	uint64_t beat_look_ns; /* and when the last of these was */
	bool capture_done;     /* it said so, or was not needed any more */
	struct unwind *unwinds[HEARTBEAT_SLOTS];
	size_t n_unwinds;
	struct child ship;
	int ship_fds[INIT_FILE_N];   /* -1: none */
	struct msg_spool spool_past; /* of ship processes that died */
	struct msg_spool spool_now;
	struct target targets[HEARTBEAT_SLOTS];
	size_t n_targets;

	uint64_t governed_at_ns; /* when the governor looked */
	uint64_t governed_ns;	 /* and what the broker itself had used */
	struct governor_cost governed_all; /* since a rate was changed */
	bool governor_gave_up; /* the lowest rates are too much, and it said so
				*/

	uint64_t epoch_ns;
	uint64_t period_ns;
	uint64_t wall_offset_us;
	/* By broker_now_ns. */
	uint64_t started_ns; /* first target attached; 0: not yet */
	uint64_t ended_ns;   /* sampling has stopped; 0: not yet */
	bool stopping;	     /* the last chunks are being made */
	bool hurried;	     /* another signal came since: deliver no more */
	bool failed;	     /* a child cannot be started: all comes to its end
			      */
	bool ending;	     /* the children are to end, and stay so */
	bool pause_asked;    /* by SIGTSTP, and no SIGCONT came since */
	bool pausing;	     /* capture is to end, and to stay so */
	uint64_t away_ns;    /* how long we have been stopped by that */
	struct limit limit;

	struct envelope *envelopes;   /* oldest first */
	size_t n_envelopes, n_handed; /* to ship */
	uint64_t last_seq;
	uint64_t finish_ns; /* when ship gives up, by clock_mono_ns; 0: not yet
			     */
	struct client_report untold; /* lost, and ship does not know of them */
	uint64_t files_written;

	size_t tables_awaited;
};

/* broker.c */
/* Waits for events, up to timeout_ms, and deals with them. */
void broker_run_once(struct broker *b, int timeout_ms);
/* CLOCK_MONOTONIC without the time that we were stopped by SIGTSTP. */
uint64_t broker_now_ns(const struct broker *b);
/*
 * How many milliseconds broker_run_once may wait for a deadline by
 * broker_now_ns; what is looked after several times a second does not wait for
 * it.
 */
int broker_wait_ms(const struct broker *b, uint64_t deadline_ns);

/* children.c */
void children_init(struct broker *b);
must_check int children_start(struct broker *b);
/* Starts the unwind process of a uid, or returns the one that runs. */
must_check int children_unwind(struct broker *b, uint32_t uid,
			       struct unwind **ret);
/* Capture is asked for its ring, and it gets it when that is made. */
must_check int unwind_make_ring(struct broker *b, struct unwind *u);
/* Several times a second: heartbeat, restarts that are due. */
void children_check(struct broker *b);

/* socket.c */
/* A child cannot be trusted any more, or does not read: it is killed. */
void child_fail(struct child *child, const char *why);
/* Sends, or fails the child. A child that is not running gets nothing. */
void child_send(struct child *child, const void *message, size_t size,
		const int *fds, size_t n_fds);
/* A loop_fn of its socket: takes one message. */
void child_on_readable(void *ctx);
/* What it sent before it died counts; then its socket is closed. */
void child_take_last(struct child *child);
void child_close(struct child *child);

/* reap.c */
/* If it ended now, would it be replaced by another? */
bool child_is_wanted(const struct child *child);
/*
 * It does not run, or has ended: plans another start, soon for the first
 * failure in a row. Says so then, and once more when it goes on like that.
 */
void child_failed(struct child *child, const char *what);
/* SIGCHLD: takes note of who has ended. */
void children_reap(struct broker *b);
/* Those that were killed and do not die: goes on as if they had. */
void children_check_killed(struct broker *b);
/* Closes their sockets, waits for their end, kills what is left. */
void children_end(struct broker *b);

/* watch.c */
/* Kills a capture that shows no heartbeat, and leaves out who is to blame. */
void watch_heartbeat(struct broker *b);

/* ship_files.c */
/* Opens what the options name; on a fault prints one line. */
must_check int ship_files_open(struct broker *b);

/* targets.c */
/* Looks at the process; on a fault prints one line. */
must_check int target_open(struct broker *b, int32_t pid);
/*
 * It is to be attached, again after capture was replaced: as soon as unwind
 * knows of it, and nobody else has attached to it meanwhile.
 */
void target_start(struct broker *b, struct target *t);
void target_on_state(struct broker *b, const struct msg_target_state *m);
/*
 * At every turn: tells unwind and capture of those that they can be told of
 * now, also where another tracer has let go.
 */
void targets_check(struct broker *b);
/* No records come any more: what there is becomes the last chunk. */
void target_close(struct target *t);
/* That, of all. */
void targets_close(struct broker *b);
struct target *target_of(struct broker *b, uint32_t id);
bool targets_all_closed(const struct broker *b);
bool targets_any_open(const struct broker *b);

/* past.c */
/* capture is gone: keeps its counters; hung_target made it hang (0: none). */
void targets_capture_died(struct broker *b, uint32_t hung_target);
void targets_unwind_died(struct broker *b, struct unwind *u);
/* Ticks at which it was profiled, had there been a capture, are missed. */
void target_count_absence(const struct broker *b, struct target *t,
			  uint64_t now_ns);
/* We have been stopped, or let go, until now: nothing is expected of that. */
void targets_resumed(struct broker *b, uint64_t now_ns);

/* ship is gone: keeps its figures of the spool. */
void past_ship_died(struct broker *b);
/* What became of chunks in the spool, and what is there now. */
void past_spool(const struct broker *b, struct msg_spool *ret);

/* inbox.c */
void unwind_on_message(struct child *child, struct ipc_message *m);
void capture_on_message(struct child *child, struct ipc_message *m);

/* delivery.c */
/* A chunk's payload, sealed; fd stays the caller's. */
must_check int delivery_chunk(struct broker *b, struct target *t,
			      const struct msg_chunk *m, int fd);
void ship_on_message(struct child *child, struct ipc_message *m);
/* ship was replaced: what is on its way is handed over again. */
void delivery_resend(struct broker *b);
/* ship has so long until it gives up what the server has not taken. */
void delivery_finish(struct broker *b, uint64_t timeout_ns);
/* Gives up what is still on its way. */
void delivery_give_up(struct broker *b);

/* loss.c */
/* A chunk of t is lost before ship had it: enum discard. */
void loss_count(struct broker *b, struct target *t, uint32_t reason);
/* What there was no ship to be told of. */
void loss_tell(struct broker *b);
const char *discard_name(uint32_t reason);

/* stats.c */
must_check int stats_write(struct broker *b);
/* All figures of capture for a target, dead ones and the living. */
void target_counters(const struct broker *b, const struct target *t,
		     struct capture_counters *ret);

#endif
