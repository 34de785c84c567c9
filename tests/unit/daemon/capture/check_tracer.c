/* The kernel detaches a thread's tracees when the thread ends. */
#include "daemon/capture/tracer.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

/* So many that detaching takes longer than the return from pthread_join(3). */
#define CHILDREN 500

static pid_t children[CHILDREN];

static void set_up(void)
{
	for (int i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		ck_assert_int_ge(children[i], 0);
		while (children[i] == 0)
			(void)pause();
	}
}

static void tear_down(void)
{
	for (int i = 0; i < CHILDREN; i++)
		(void)kill(children[i], SIGKILL);
	for (int i = 0; i < CHILDREN; i++)
		(void)waitpid(children[i], NULL, __WALL);
}

static void seize_all(void *ctx)
{
	int *seized = ctx;

	for (int i = 0; i < CHILDREN; i++)
		*seized += ptrace(PTRACE_SEIZE, children[i], NULL, NULL) == 0;
}

FIXTURE(set_up, tear_down)

TEST(no_process_is_traced_after_tracer_run)
{
	for (int n = 0; n < 10; n++) {
		int seized = 0;

		OK(tracer_run(seize_all, &seized));
		for (int i = 0; i < CHILDREN; i++)
			ck_assert_int_eq(live_status(children[i], "TracerPid"), 0);
		ck_assert_int_eq(seized, CHILDREN);
	}
}
