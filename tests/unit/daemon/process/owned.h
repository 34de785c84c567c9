/*
 * A process with certain ids, for tests of what the daemon reads of it: a fork of the test that
 * takes the ids and waits.
 */
#ifndef TESTS_UNIT_DAEMON_PROCESS_OWNED_H
#define TESTS_UNIT_DAEMON_PROCESS_OWNED_H

#include <signal.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

struct owned {
	pid_t pid;
	int to, from; /* pipes */
};

/* What the process does, for each byte that owned_go() sends: 0, or its exit status. */
typedef int (*owned_fn)(char step);

static inline void owned_loop(owned_fn fn, int in, int out)
{
	char step;
	int r;

	while (read(in, &step, 1) == 1) {
		r = fn(step);
		if (r != 0)
			_exit(r);
		if (write(out, &step, 1) != 1)
			_exit(1);
	}
	_exit(0);
}

/* Makes the process call fn(step), and waits until fn has returned 0. Fails the test otherwise. */
static inline void owned_go(const struct owned *o, char step)
{
	char done;

	ck_assert_int_eq(write(o->to, &step, 1), 1);
	ck_assert_int_eq(read(o->from, &done, 1), 1);
}

/* Starts the process. fn takes the ids when the test calls owned_go(). */
static inline void owned_start(struct owned *o, owned_fn fn)
{
	int to[2], from[2];

	OK(pipe(to));
	OK(pipe(from));
	o->pid = fork();
	ck_assert_int_ge(o->pid, 0);
	if (o->pid == 0) {
		(void)close(to[1]);
		(void)close(from[0]);
		owned_loop(fn, to[0], from[1]);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	o->to = to[1];
	o->from = from[0];
}

/* Kills the process. */
static inline void owned_end(struct owned *o)
{
	(void)kill(o->pid, SIGKILL);
	ck_assert_int_eq(waitpid(o->pid, NULL, 0), o->pid);
	(void)close(o->to);
	(void)close(o->from);
}

#endif
