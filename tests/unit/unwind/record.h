/*
 * Helpers of tests: run a target program, stop its threads, record them as capture would, and
 * unwind them at the same stop with other unwinders. A failure ends the test.
 */
#ifndef TESTS_UNIT_UNWIND_RECORD_H
#define TESTS_UNIT_UNWIND_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "daemon/oracle/oracle.h"
#include "lib/unwind/unwind.h"

#define TARGET_TEXT_MAX 4096

/* A child that has printed "ready". */
struct target {
	pid_t pid;
	int in;			    /* its standard input; closing it ends the target */
	int out;		    /* its standard output */
	char text[TARGET_TEXT_MAX]; /* its output up to "ready" */
	struct unwind_cache *cache;
	struct unwind_space *space;
	struct oracle *oracles[ORACLE_N]; /* the unwinders that were asked; NULL: not yet */
};

/* Runs build/targets/NAME ARG... (NULL-terminated) until it prints "ready". */
void target_start(struct target *t, const char *name, const char *const *args);
/* Initialises t for a process that runs already; target_stop() does not kill it. */
void target_adopt(struct target *t, pid_t pid);
/* Kills the process if target_start() has started it, and frees t's space. */
void target_stop(struct target *t);

/* Sets the target's present maps in the space. */
void target_read_maps(struct target *t);

/* Returns the text of the target's maps. The caller frees it. */
char *target_maps_text(const struct target *t);

/* Lists the tids of the target's threads, at most max. Returns how many there are. */
size_t target_threads(const struct target *t, pid_t *tids, size_t max);

/* The call that poll(3) makes. */
#ifdef SYS_poll
#define RECORD_POLL SYS_poll
#else
#define RECORD_POLL SYS_ppoll
#endif

/* Waits until the thread blocks in a system call that targets wait in. Returns its number. */
long target_wait_blocked(const struct target *t, pid_t tid);

/* Opens files as the broker does. ctx is the struct target. */
extern const struct unwind_files target_files;

void thread_seize(pid_t tid);
/* Stops a seized thread. */
void thread_interrupt(pid_t tid);
void thread_continue(pid_t tid);
/* Lets a stopped thread execute n instructions. */
void thread_step(pid_t tid, unsigned int n);
/* Lets a stopped thread run on. */
void thread_detach(pid_t tid);

/*
 * Records a stopped thread: all registers, and its stack up to the end of the mapping. The caller
 * frees the record.
 */
struct record_sample *record_thread(const struct target *t, pid_t tid, size_t *ret_size);

/* Unwinds a stopped thread with another unwinder. */
void target_oracle(struct target *t, enum oracle_kind kind, pid_t tid, struct oracle_stack *ret);

#endif
