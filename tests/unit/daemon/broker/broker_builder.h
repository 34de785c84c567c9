/*
 * Builds the connected parts of a broker for a test. No child process runs and no file is open;
 * the test is at the other end of the sockets. The functions add children and runs with defaults;
 * a test sets the members that it is about.
 */
#ifndef TESTS_UNIT_DAEMON_BROKER_BROKER_BUILDER_H
#define TESTS_UNIT_DAEMON_BROKER_BROKER_BUILDER_H

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/child.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/wiring.h"
#include "lib/base/clock.h"
#include "lib/base/ipc.h"
#include "tests/unit/suite.h"

/* Initialises *b: the parts are connected, and there are no processes and no instances. */
static inline void build_broker(struct broker *b)
{
	memset(b, 0, sizeof(*b));
	wiring_connect(b);
	b->modules.state.clocks =
		(struct state_clocks){clock_mono_ns, clock_boot_ns, clock_wall_ns};
	b->modules.children.capture.fd = -1;
	b->modules.delivery.output.dir_fd = -1;
}

/* Returns the pid of a process that never sends a message, and that the broker may kill. */
static inline pid_t make_sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

/* Adds an unwind process that is ready. Returns the other end of its socket. */
static inline int build_unwind(struct broker *b, struct unwind *u)
{
	int pair[2];

	OK(ipc_pair(pair));
	*u = (struct unwind){.link_fd = -1,
			     .child = {.type = &child_types[CHILD_UNWIND],
				       .children = &b->modules.children,
				       .state = CHILD_READY,
				       .pid = 1,
				       .fd = pair[0]}};
	b->modules.children.unwinds[b->modules.children.n_unwinds++] = u;
	return pair[1];
}

/* Adds the ship of a DSN, without a process. */
static inline void build_ship(struct broker *b, struct ship *s)
{
	*s = (struct ship){.dsn = "x",
			   .child = {.type = &child_types[CHILD_SHIP],
				     .children = &b->modules.children,
				     .fd = -1}};
	b->modules.children.ships[b->modules.children.n_ships++] = s;
}

/* Opens a run on i, which is profiled. u may be NULL: the run has no unwind process. */
static inline struct run *build_run(struct broker *b, struct instance *i, struct unwind *u)
{
	i->targets = &b->modules.targets;
	if (i->owner.kind == OWNER_NONE)
		(void)!owner_read(i->pid, &i->owner);
	OK(targets_open_run(&b->modules.targets, i, 0, false));
	i->run->phase = RUN_PROFILED;
	i->run->session = u == NULL ? SESSION_NONE : SESSION_OPEN;
	i->run->unwind = u;
	return i->run;
}

#endif
