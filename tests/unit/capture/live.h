/*
 * Runs lib/capture on a real process. The test process is the tracer: it starts a program of
 * tests/targets, attaches to it, gives ticks by hand, and reads the records from the ring. Every
 * record is checked against the rules of lib/capture/sample.h.
 *
 * In the records, ticks are 10 ms apart; in real time they come whenever the test gives one. Tests
 * wait for events, with no time limit but LIVE_PATIENCE_S, after which a broken test fails.
 */
#ifndef TESTS_UNIT_CAPTURE_LIVE_H
#define TESTS_UNIT_CAPTURE_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/ring.h"
#include "lib/capture/capture.h"
#include "lib/capture/sample.h"

#define LIVE_PATIENCE_S 300

#define LIVE_TARGET  7
#define LIVE_TICK_NS (10 * NS_PER_MS)

/* More than the largest record type. */
#define LIVE_TYPES 16

/* The state of a thread by its records since its RECORD_THREAD. */
struct live_thread {
	uint32_t tid;
	bool announced;
	bool is_main;
	bool exited;
	bool missing; /* the thread's last record is a RECORD_MISSED */
	char comm[COMM_SIZE + 1];
	uint64_t samples;
	uint64_t running; /* samples that are marked as running */
	uint64_t last_tick;
	uint64_t last_sample_tick;
	/* Values of the thread's last sample. */
	uint64_t sp;
	uint32_t flags;
	uint32_t stack_size;
};

#define LIVE_THREADS_MAX 20000

struct thread;
struct traced_process;

struct live {
	struct capture *capture;
	struct capture_sink sink;
	struct ring_reader reader;
	struct capture_counters counters;
	struct capture_beat beat;
	uint64_t tick, tick_ns;
	unsigned int gone, execs, other_tracer, other_rights; /* counts of events */
	bool reads;					      /* false: the reader does not read */
	bool more;			      /* capture_reap() has left wait statuses */
	struct perf *perf;		      /* for options.perf; the test closes it */
	bool follow_children;		      /* live_open() sets options.born */
	int32_t born;			      /* pid of the last child that was reported */
	bool holds_execs;		      /* live_open() sets options.executed */
	int32_t executed;		      /* pid of the last process that is held */
	bool leaves_crashes;		      /* live_open() sets options.crashed */
	unsigned int crashes, crashes_traced; /* counts of reports */
	struct capture_crash crash;	      /* the last report */

	pid_t child; /* the program */
	pid_t pid;   /* the target: the program, or its child */
	pid_t first; /* the number after "ready" */
	int pidfd;
	int in, out;

	struct record_watched watched; /* the last one */
	uint64_t records[LIVE_TYPES];
	uint64_t settled_ns;
	bool ended;
	struct live_thread *threads; /* room for LIVE_THREADS_MAX */
	size_t n_threads;
};

/* Starts build/targets/NAME with the arguments up to NULL, and waits for "ready". */
void live_start(struct live *l, const char *name, const char *argument, const char *argument2);
/* Makes a capture and a ring of ring_bytes. live_start() may come before or after. */
void live_open(struct live *l, size_t ring_bytes);
/*
 * Blocks the signals that a tracing thread blocks: SIGCHLD, and SIGALRM, which it unblocks while it
 * attaches (lib/capture/seize.h). live_open() does this for the thread that calls it. Call this
 * before another thread traces.
 */
void live_block_signals(void);
/* Calls capture_add() for the target, and returns its result. */
int live_add(struct live *l);
/* Calls live_add(), and repeats the scan until all threads are attached. */
void live_attach(struct live *l);
/* Calls live_start() of cap_threads and live_open(). Does not attach. */
void live_prepare(struct live *l);
/* Does the same, and lets the main thread end. */
void live_prepare_leaderless(struct live *l);
/* Calls live_start(), live_open() and live_attach(). */
void live_begin(struct live *l, const char *name, const char *argument, const char *argument2);
/*
 * Does the same, but the leader has no exit stop, like a leader that was already dying when capture
 * attached.
 */
void live_begin_without_exit(struct live *l, const char *name);
/* Ends the target, takes its wait statuses and frees everything. */
void live_end(struct live *l);

/*
 * Sends a line to the program; waits for a line that begins with word, and returns its first
 * number; does both.
 */
void live_say(struct live *l, const char *line);
long live_answer(struct live *l, const char *word);
long live_ask(struct live *l, const char *line, const char *word);
/* Sends word to the program, and returns the number after word in the answer. */
long live_count(struct live *l, const char *word);

/* Adds a target without a process to the capture; free it with targets_free(). */
struct traced_process *live_bare_target(struct capture *c);

/* Returns capture's state of a thread. The thread must be in the table. */
struct thread *live_known(const struct live *l, pid_t tid);

/* Gives the next tick if capture wants it, and handles the stops so far. */
void live_tick(struct live *l);
/* Runs tick `number`, due or not, and leaves stopped threads to live_reap. */
void live_look(struct live *l, uint64_t number);
/*
 * Replaces the text of an activity file of a thread (*fd), or of a file of a target, until
 * live_unscript() or the end of the test.
 */
void live_script(int *fd, const char *text);
/* Restores the real file. Does nothing if it was not replaced. */
void live_unscript(int *fd);
/* Gives a tick at which a thread seems to run, so that it is interrupted if that is allowed. */
void live_tick_running(struct live *l, struct thread *th);
/* Gives a tick as if the sampler had not run for ticks - 1 ticks before it. */
void live_tick_late(struct live *l, uint64_t ticks);
/* Handles the wait statuses so far. */
void live_reap(struct live *l);
/* Waits until no interrupt is under way. */
void live_settle(struct live *l);
/* Waits until a status of a tracee has come. */
void live_wait(struct live *l);
/*
 * Gives n ticks. Before each one waits for the threads that should run, and after it for the stops.
 */
void live_ticks(struct live *l, unsigned int n);

/* Advances capture's clock by ns. */
void live_later(uint64_t ns);
/* Stops capture's clock. From now on it advances by ns at each reading. */
void live_step(uint64_t ns);

/*
 * Takes all descriptors of the test process, so that it can open no file until
 * live_give_descriptors().
 */
void live_take_descriptors(void);
void live_give_descriptors(void);

/* Reads and checks all records, and returns their room in the ring (credit). */
void live_read(struct live *l);
const struct live_thread *live_thread(const struct live *l, pid_t tid);

/* Functions of live_wait.c: the state of threads, and waiting. */

/* Waits until all threads that should run have got a processor. */
void live_until_all_run(const struct live *l);
/* Waits until the thread is blocked in a system call. Handles its stops meanwhile. */
void live_until_blocked(struct live *l, pid_t tid);
/* Returns a number of /proc/TID/status, such as "TracerPid:"; -1: the thread is gone. */
long live_status(pid_t tid, const char *key);
/* Returns the state letter of a thread; 0: the thread is gone. */
char live_state(pid_t tid);
/* Waits for that letter. If l is not NULL, handles stops meanwhile. */
void live_until_state(struct live *l, pid_t tid, char state);
/* Starts another tracer, a child process, which traces the thread as long as the child lives. */
pid_t live_start_tracer(pid_t tid);

uint64_t live_missed(const struct live *l);
/* Checks that expected = captured + repeated + filled + missed, and that no sample is under way. */
void live_check_sum(const struct live *l);
/* Fails the test when a program is waited for longer than LIVE_PATIENCE_S. */
void live_patience(void);

#endif
