/*
 * lib/capture on a real process, in the test's own: starts a program of
 * tests/targets, attaches to it, gives ticks by hand, and reads what comes out
 * of the ring, every record checked against lib/capture/sample.h as it comes.
 *
 * Ticks are 10 ms apart in the records and as close as the test calls them in
 * fact. Waiting is for an event, and has an end only so that a broken test
 * fails: LIVE_PATIENCE_S.
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

/* Records of a type, of all threads. */
#define LIVE_TYPES 16

/* What the records say of a thread, since it was announced. */
struct live_thread {
	uint32_t tid;
	bool announced;
	bool is_main;
	bool exited;
	bool missing; /* a RECORD_MISSED was its last */
	char comm[COMM_SIZE + 1];
	uint64_t samples;
	uint64_t running; /* of these */
	uint64_t last_tick;
	uint64_t last_sample_tick;
	/* Of its last sample. */
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
	unsigned int gone, execs, taken; /* events */
	bool reads;			 /* false: the reader is away */
	bool more;			 /* capture_reap had enough for once */
	bool follows;			 /* children, for live_open */
	int32_t born;			 /* the last that it told of */

	pid_t child; /* the program */
	pid_t pid;   /* the target: the program, or its child */
	pid_t first; /* the number behind "ready" */
	int pidfd;
	int in, out;

	uint64_t records[LIVE_TYPES];
	uint64_t settled_ns;
	bool ended;
	struct live_thread *threads; /* LIVE_THREADS_MAX of them */
	size_t n_threads;
};

/* Starts build/targets/NAME with arguments up to NULL, waits for "ready". */
void live_start(struct live *l, const char *name, const char *argument, const char *argument2);
/* A capture and a ring of ring_bytes; live_start may come before or after. */
void live_open(struct live *l, size_t ring_bytes);
/* Which live_open does for the thread that calls it. */
void live_block_signals(void);
/* capture_add of the target; returns what it returns. */
int live_add(struct live *l);
/* live_add, and it is attached to all threads, however long that takes. */
void live_attach(struct live *l);
/* live_start of cap_threads and live_open: it is not attached to yet. */
void live_prepare(struct live *l);
/* The same of one whose main thread has ended. */
void live_prepare_leaderless(struct live *l);
/* All of these. */
void live_begin(struct live *l, const char *name, const char *argument, const char *argument2);
/*
 * live_begin where the leader comes to no stop before it dies, as one that was
 * past it when it was attached to.
 */
void live_begin_without_exit(struct live *l, const char *name);
/* Ends the target, takes its statuses and frees everything. */
void live_end(struct live *l);

/* A line to the program, and the first number of the one it answers. */
void live_say(struct live *l, const char *line);
long live_answer(struct live *l, const char *word);
long live_ask(struct live *l, const char *line, const char *word);
/* The number behind a word that is the question, too. */
long live_count(struct live *l, const char *word);

/* Another one of that capture, of no process; for targets_free(). */
struct traced_process *live_bare_target(struct capture *c);

/* What capture knows of a thread. */
struct thread *live_known(const struct live *l, pid_t tid);

/* A tick, if capture wants it, and what has stopped by now. */
void live_tick(struct live *l);
/* Runs tick `number`, due or not, and leaves stopped threads to live_reap. */
void live_look(struct live *l, uint64_t number);
/*
 * From here on the kernel says that in a file of a thread's activity, *fd, or
 * of a target; until live_unscript or the test's end.
 */
void live_script(int *fd, const char *text);
/* What it says is true again. Nothing where no script was given. */
void live_unscript(int *fd);
/* A tick at which a thread seems to run: it is interrupted if it may be. */
void live_tick_running(struct live *l, struct thread *th);
/* As if the sampler had not run for ticks - 1 before. */
void live_tick_late(struct live *l, uint64_t ticks);
/* Takes what has stopped by now. */
void live_reap(struct live *l);
/* Until no interrupt is under way. */
void live_settle(struct live *l);
/* Until a status of a tracee has come. */
void live_wait(struct live *l);
/* n ticks, each waited for, and for who is to run before it. */
void live_ticks(struct live *l, unsigned int n);

/* From now on it is later by so much than it is, for capture. */
void live_later(uint64_t ns);
/* From now on its clock stands still but for so much each time it is read. */
void live_step(uint64_t ns);

/* From here on the test's process can open nothing more, until it may again. */
void live_take_descriptors(void);
void live_give_descriptors(void);

/* The reader reads, and gives credit. */
void live_read(struct live *l);
const struct live_thread *live_thread(const struct live *l, pid_t tid);

/* live_wait.c: where threads are, and what is waited for. */

/* Waits until all that are to run have come to a processor. */
void live_until_all_run(const struct live *l);
/* Waits until the thread is blocked in a call; its stops are taken. */
void live_until_blocked(struct live *l, pid_t tid);
/* A number of /proc/PID/task/TID/status, such as "TracerPid"; -1: gone. */
long live_status(pid_t tid, const char *key);
/* The state letter of a thread; 0: gone. */
char live_state(pid_t tid);
/* Waits for that letter; with l, what stops meanwhile is taken. */
void live_until_state(struct live *l, pid_t tid, char state);
/* Another tracer, which has the thread for as long as it lives: a child. */
pid_t live_start_tracer(pid_t tid);

uint64_t live_missed(const struct live *l);
/* expected = captured + repeated + filled + missed, nothing pending. */
void live_check_sum(const struct live *l);
/* Fails the test when a program is waited for longer than LIVE_PATIENCE_S. */
void live_patience(void);

#endif
