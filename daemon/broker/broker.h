/*
 * The broker's state, shared by its parts and by nobody else:
 *   main.c      main: start, the loop
 *   ship_files.c  what ship reads and writes
 *   finish.c    the end
 *   picture.c   the file that is made of the run then
 *   broker.c    a turn of the loop, and its clock
 *   pause.c     SIGTSTP and SIGCONT
 *   command.c   the command that it starts
 *   limit.c     the server's limits
 *   children.c  starts and restarts the other processes
 *   socket.c    talks with them
 *   reap.c      takes note of their ends
 *   blame.c     and of the files at which unwind dies
 *   record.c    recordings of processes, for peers of the control socket
 *   idle.c      ends those that nobody needs
 *   overdue.c   kills those that owe an answer for too long
 *   watch.c     the heartbeat of capture
 *   inbox.c     what capture and unwind say
 *   discovery.c finds processes that the configuration is about
 *   instance.c  the processes that are known
 *   operate.c   what operators and clients ask for, on its socket
 *   status.c    and what the former are shown
 *   inspect.c   and what doctor wants to know
 *   clients.c   those of them that speak for themselves
 *   targets.c   runs of the profiler on them: their table, their ends
 *   attach.c    and what happens from their start on
 *   past.c      what was kept of, and lost with, children that died
 *   refusal.c   the lines for those that cannot be
 *   delivery.c  chunks on their way to files and to Sentry
 *   loss.c      those that do not arrive
 *   figures.c   the figures of targets and instances
 *   progress.c  the line on a terminal
 *   stats.c     and of the run
 *   governor.c  keeps all of them within the CPU budget
 *   measure.c   what targets use, for their chunks
 *   usage.c     of these, processor time and memory
 *   service.c   what a service manager is told
 *   metrics.c   what a monitoring system asks for
 *
 * Single-threaded, one broker per process; a call never waits for a child.
 *
 * Lists of the broker (instances, targets, unwinds, ships, envelopes, clients)
 * change in two places only. An object is appended when it is made. One that
 * has ended is marked, so that no function finds it any more, and broker_sweep
 * frees it at the end of the turn, when no list is being walked.
 */
#ifndef DAEMON_BROKER_BROKER_H
#define DAEMON_BROKER_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config/accounts.h"
#include "daemon/broker/control/clients.h"
#include "daemon/broker/command.h"
#include "daemon/broker/files/deadly.h"
#include "daemon/broker/discovery/discovery.h"
#include "daemon/broker/files/files.h"
#include "daemon/broker/targets/figures.h"
#include "daemon/broker/targets/governor.h"
#include "daemon/msg/heartbeat.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/common/missing.h"
#include "daemon/msg/msg.h"
#include "daemon/broker/notify.h"
#include "daemon/broker/options.h"
#include "daemon/broker/delivery/output.h"
#include "daemon/broker/children/patience.h"
#include "daemon/broker/delivery/picture.h"
#include "daemon/broker/report/progress.h"
#include "daemon/broker/children/restarts.h"
#include "daemon/broker/targets/session.h"
#include "daemon/broker/targets/targets.h"
#include "lib/base/loop.h"
#include "lib/base/siphash.h"
#include "proto/client_report.h"
#include "proto/dsn.h"

struct broker;
struct child;
struct control;
struct inspection;
struct recording;

/* What a process has used, over all its lives. */
struct usage {
	double cpu_s;
	uint64_t rss_bytes;
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

/* The server takes no profiles (limit.c). */
struct limit {		   /* of a DSN */
	uint64_t until_ns; /* by clock_boot_ns; 0: never */
	bool holds;	   /* nothing is to be sampled because of it, */
	uint64_t since_ns; /* by broker_now_ns */
	uint64_t paused_ns, pauses;
};

/*
 * One for each DSN, so that a server which stalls holds up nobody else's
 * chunks, and none knows another's key. The first is that of the options, which
 * may be nowhere: then it writes files only, as all of them do.
 */
#define SHIPS_MAX 32 /* each has a process */
struct ship {
	struct child child;	    /* the first member, so that a struct child leads here */
	char dsn[MSG_DSN_MAX];	    /* "": nothing is sent */
	char place[DSN_PLACE_SIZE]; /* of the DSN's server, for a person; "" */
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

struct envelope; /* delivery.c */

/* For what a test has to set; all else asks lib/base/clock.h. */
struct broker_clocks {
	clock_fn mono, boot, wall;
};

/*
 * Sentry's viewer on the developer's machine, which gets a copy of each chunk.
 * Spotlight has a ship of its own, without a spool: a chunk that this ship has
 * no room for is dropped at once. Chunks that Spotlight lost are counted here,
 * and nowhere else.
 */
struct spotlight {
	char url[CONFIG_TEXT_MAX]; /* does not change; "": Spotlight is off */
	struct ship *ship;	   /* NULL: Spotlight is off */
	size_t n_envelopes;	   /* of b->n_envelopes */
	struct chunk_counts chunks;
};

/* What the broker has come to. It never goes back: broker_goes_on_to. */
enum broker_phase {
	BROKER_PROFILES,
	BROKER_STOPS,	/* the last chunks are being made */
	BROKER_SAMPLED, /* sampling has stopped: chunks are delivered */
	BROKER_CLOSES,	/* the children are to end, and stay so */
};

struct broker {
	struct options options;
	struct broker_clocks clocks;
	struct command command;
	struct discovery *discovery;	/* NULL: there are none to be found */
	struct session_key session_key; /* with discovery */
	struct loop *loop;
	struct files *files;
	struct output output;
	struct picture picture;
	int stats_fd; /* -1: none */
	struct notify notify;
	bool privileged;
	struct missing_facts missing;
	uint32_t nice_steps;   /* so many it goes before who started it */
	bool has_dsn;	       /* there is one at least, and chunks are sent */
	char dsn[MSG_DSN_MAX]; /* of the options */

	struct child capture;
	const struct heartbeat *heartbeat;
	uint64_t last_beat_ns; /* its newest, as far as we have seen */
	uint32_t beat_looks;   /* that found no newer one, */
	uint64_t beat_look_ns; /* and when the last of these was */
	bool capture_done;     /* it said so, or was not needed any more */
	struct unwind *unwinds[HEARTBEAT_SLOTS];
	size_t n_unwinds;
	struct usage unwinds_gone;	     /* of those that were freed */
	uint8_t files_key[SIPHASH_KEY_SIZE]; /* of the numbers of files */
	struct deadly *deadly;		     /* NULL: none has died at a file yet */
	uint64_t files_refused;		     /* questions of unwind: want.h */
	struct ship *ships[SHIPS_MAX];
	size_t n_ships;
	struct spotlight spotlight;
	struct usage ships_gone;	/* of those that were freed, */
	struct spool_counts spool_gone; /* their spools, */
	struct limit limits_gone;	/* and their limits: pauses, paused_ns */
	int ship_fds[INIT_FILE_N];	/* -1: none */
	struct restarts restarts;
	bool has_worked[CHILD_KIND_N];		/* a child of this kind was ready once */
	struct target targets[HEARTBEAT_SLOTS]; /* FOR_EACH_TARGET */
	uint32_t last_target;			/* its id */
	struct instance **instances;		/* oldest first */
	size_t n_instances, instances_size;
	struct clients clients;
	struct recording *records;     /* oldest first */
	uint32_t last_record;	       /* number of the newest */
	struct control *control;       /* NULL: there is no socket */
	struct inspection *inspection; /* inspect.c; NULL: none goes on */
	bool instances_told;	       /* that there are too many */
	struct instance_figures gone;  /* of instances that are none any more */

	uint64_t governed_at_ns;	   /* when the governor looked */
	uint64_t governed_ns;		   /* and what the broker itself had used */
	struct governor_cost governed_all; /* since a rate was changed */
	struct governor_births births;
	struct governor_told budget_told;
	bool governor_gave_up; /* the lowest rates are too much, and it said so
				*/

	uint32_t timer_hz; /* ticks a second, to the end */
	uint64_t epoch_ns;
	uint64_t period_ns;
	/* By broker_now_ns. */
	uint64_t started_ns; /* first target attached; 0: not yet */
	uint64_t ended_ns;   /* sampling has stopped; 0: not yet */
	enum broker_phase phase;
	bool hurried;	  /* a signal came after BROKER_PROFILES */
	bool failed;	  /* a child cannot be started, so all ends */
	bool pause_asked; /* by SIGTSTP, and no SIGCONT came since */
	bool pausing;	  /* capture is to end, and to stay so */
	uint64_t away_ns; /* how long we have been stopped by that */

	struct envelope *envelopes; /* oldest first */
	size_t n_envelopes;	    /* of them, those that are in flight */
	uint64_t second_ns;	    /* when broker.c last did each_second */
	uint64_t last_seq;
	uint64_t finish_ns; /* when ship gives up, by clock_mono_ns; 0: not yet
			     */
	uint64_t files_written;

	size_t tables_awaited;
	struct progress progress;
};

/* Runs are started and ended: it does not stop, or pause. */
static inline bool broker_profiles(const struct broker *b)
{
	return b->phase == BROKER_PROFILES && !b->pausing;
}

/* Samples are taken, also for the last chunks. */
static inline bool broker_samples(const struct broker *b)
{
	return b->phase < BROKER_SAMPLED && !b->pausing;
}

/* broker.c */
/* Has no effect where the broker is there, or past that phase. */
void broker_goes_on_to(struct broker *b, enum broker_phase phase);
/* Waits for events, up to timeout_ms, and deals with them. */
void broker_run_once(struct broker *b, int timeout_ms);
/* That of the target with the highest rate; the others leave out ticks. */
uint32_t broker_timer_hz(const struct options *o);
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

/* socket.c */
/* A child cannot be trusted any more, or does not read: it is killed. */
void child_fail(struct child *child, const char *why);
/*
 * The same without a word: the child's socket is open until its end. Returns
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

/* blame.c */
/* The page of an unwind process that is about to start; *ret_fd is for it. */
must_check int blame_begin(struct unwind *u, int *ret_fd);
void blame_end(struct unwind *u);
/* It has ended, with this status of wait(2). */
void blame_died(struct broker *b, struct unwind *u, int status);
/*
 * A file is about to be handed over: what number goes with it, the same each
 * time, 0 for none. -EACCES: it is left out.
 */
must_check int blame_hand(struct broker *b, const struct unwind *u, const struct msg_want *want,
			  const struct file_shown *file, uint32_t *ret_number);

/* watch.c */
/* Kills a capture that shows no heartbeat, and leaves out who is to blame. */
void watch_heartbeat(struct broker *b);
/* True if it gets on with what it was told to do: see daemon/broker/children/patience.h. */
must_check bool watch_works(const struct broker *b);

/* ship_files.c */
/* Is the file at this index of b->ship_fds there, and for this ship? */
bool ship_files_has(const struct ship *s, size_t file);
/* Opens what the options name; on a fault prints one line. */
must_check int ship_files_open(struct broker *b);
/*
 * At a reload: opens certificates and keys again, and hands them to all ships.
 * Where one cannot be opened a line says so, and all stay as they were.
 */
void ship_files_renew(struct broker *b);

/* past.c */
/* The process has ended: the ship keeps its figures of the spool. */
void past_ship_died(struct ship *s);
/* The ship is about to be freed: the broker keeps them. */
void past_ship_gone(struct broker *b, const struct ship *s);
/* What became of chunks in the spool, and what is there now. */
void past_spool(const struct broker *b, struct spool_counts *ret);

/* inbox.c */
void unwind_on_message(struct child *child, struct ipc_message *m);
void capture_on_message(struct child *child, struct ipc_message *m);

/* delivery.c */
/*
 * A chunk with the descriptors of its message, those that are not there -1.
 * They stay the caller's. Returns 0, or -EPROTO if it breaks a rule.
 */
must_check int delivery_chunk(struct broker *b, struct instance *i, const struct msg_chunk *m,
			      const int fds[IPC_FDS_MAX]);
/* Is it a payload of so many bytes, sealed against changes? */
bool delivery_is_payload(int fd, uint64_t size);
void ship_on_message(struct child *child, struct ipc_message *m);
/* It was replaced: what is on its way is handed over again. */
void delivery_resend(struct broker *b, struct ship *s);
/* ship has so long until it gives up what the server has not taken. */
void delivery_finish(struct broker *b, uint64_t timeout_ns);
/* The same for one ship. */
void delivery_finish_ship(struct ship *s, uint64_t timeout_ns);
/* Is an envelope in flight that s delivers? */
bool delivery_needs(const struct broker *b, const struct ship *s);
/* Gives up what is still on its way. */
void delivery_give_up(struct broker *b);
/* The ship has ended for good: gives up what it had. */
void delivery_ship_gone(struct broker *b, const struct ship *s);
/*
 * At the end of a turn, before instances_sweep: frees the envelopes that are
 * not in flight any more. The only place that takes one out of the list.
 */
void delivery_sweep(struct broker *b);

/* loss.c */
/*
 * A chunk of i is lost before ship had it: enum discard. s is the ship of the
 * run that made it, whose server is told; i may have another one by now.
 */
void loss_count(struct instance *i, struct ship *s, uint32_t reason);
/* What there was no process to be told of. */
void loss_tell(struct ship *s);

/* stats.c */
must_check int stats_write(struct broker *b);
/* What the last capture runs under: fifo, nice or normal. */
const char *stats_scheduler(const struct broker *b);
/* Of its control group, in percent of a core; 0: none. */
unsigned int stats_cpu_quota(const struct broker *b);

#endif
