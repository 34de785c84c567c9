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

#include "daemon/broker/children/children.h"
#include "daemon/broker/children/patience.h"
#include "daemon/broker/children/restarts.h"
#include "daemon/broker/command.h"
#include "daemon/broker/control/clients.h"
#include "daemon/broker/delivery/output.h"
#include "daemon/broker/delivery/picture.h"
#include "daemon/broker/discovery/discovery.h"
#include "daemon/broker/files/deadly.h"
#include "daemon/broker/files/files.h"
#include "daemon/broker/notify.h"
#include "daemon/broker/options.h"
#include "daemon/broker/report/progress.h"
#include "daemon/broker/targets/figures.h"
#include "daemon/broker/targets/governor.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/session.h"
#include "daemon/broker/targets/targets.h"
#include "daemon/common/limitation.h"
#include "daemon/config/accounts.h"
#include "daemon/msg/heartbeat.h"
#include "daemon/msg/msg.h"
#include "daemon/msg/msg_ship.h"
#include "lib/base/loop.h"
#include "lib/base/siphash.h"
#include "proto/client_report.h"
#include "proto/dsn.h"

struct broker;
struct child;
struct control;
struct inspection;
struct recording;

struct envelope; /* delivery/delivery.c */

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
	struct limitation_facts limitation_facts;
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

#endif
