/*
 * For the tests: runs a target program, stops its threads, records them as
 * capture would, and asks other unwinders what they see at the same stop.
 * Every failure ends the test.
 */
#ifndef TESTS_UNIT_UNWIND_RECORD_H
#define TESTS_UNIT_UNWIND_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/oracle/oracle.h"
#include "lib/unwind/unwind.h"

#define TARGET_TEXT_MAX 4096

/* A child that has said that it is where it wants to be. */
struct target {
	pid_t pid;
	int in;			    /* its standard input; closing it ends the target */
	int out;		    /* its standard output */
	char text[TARGET_TEXT_MAX]; /* all that it printed up to "ready" */
	struct unwind_cache *cache;
	struct unwind_space *space;
	struct oracle *oracles[ORACLE_N]; /* those that were asked */
};

/* Runs build/targets/NAME ARG..., NULL-terminated, until it prints "ready". */
void target_start(struct target *t, const char *name, const char *const *args);
/* The same with a process that is there already. */
void target_adopt(struct target *t, pid_t pid);
/* Kills what target_start started, frees the space. */
void target_stop(struct target *t);

/* Takes the maps that the target has now. */
void target_read_maps(struct target *t);

/* Their text; the caller frees it. */
char *target_maps_text(const struct target *t);

/* The target's threads, at most max. */
size_t target_threads(const struct target *t, pid_t *tids, size_t max);

/* Until it waits in a call, of those that the targets wait in: its number. */
long target_wait_blocked(const struct target *t, pid_t tid);

/* Files as the broker gives them; ctx is the struct target. */
extern const struct unwind_files target_files;

void thread_seize(pid_t tid);
/* Stops a seized thread. */
void thread_interrupt(pid_t tid);
void thread_continue(pid_t tid);
/* Lets a stopped thread execute n instructions. */
void thread_step(pid_t tid, unsigned int n);
/* Lets a stopped thread go for ever. */
void thread_detach(pid_t tid);

/*
 * The record of a stopped thread: all registers, its stack up to the end of
 * the mapping. The caller frees it.
 */
struct record_sample *record_thread(const struct target *t, pid_t tid, size_t *ret_size);

/* What another unwinder sees of a stopped thread. */
void target_oracle(struct target *t, enum oracle_kind kind, pid_t tid, struct oracle_stack *ret);

#endif
