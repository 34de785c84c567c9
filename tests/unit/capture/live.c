#include "tests/unit/capture/live.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/capture/attach.h"
#include "lib/capture/capture.h"
#include "lib/capture/ptrace/arch.h"
#include "lib/capture/reap.h"
#include "lib/capture/sample.h"
#include "lib/capture/sleepers.h"
#include "lib/capture/state.h"
#include "lib/capture/targets.h"
#include "lib/capture/tracees.h"
#include "tests/unit/suite.h"

#define LIVE_RING_BYTES (16u << 20)

static uint64_t now_ns(void)
{
	struct timespec t;

	OK(clock_gettime(CLOCK_MONOTONIC, &t));
	return (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec;
}

/*
 * How far capture's clock is ahead of the real one; if the clock is stopped, the time at which it
 * was stopped, and how far each reading advances it.
 */
static uint64_t later_ns, still_ns, step_ns;

static uint64_t capture_now_ns(void)
{
	later_ns += step_ns;
	return (still_ns != 0 ? still_ns : now_ns()) + later_ns;
}

/* Counts no wait of the tracer unless the test has stopped the clock. */
static void switches(struct clock_switches *ret)
{
	static uint64_t n;

	*ret = (struct clock_switches){0};
	if (still_ns != 0)
		ret->waited = ++n;
}

void live_later(uint64_t ns)
{
	later_ns += ns;
}

void live_step(uint64_t ns)
{
	if (still_ns == 0)
		still_ns = now_ns();
	step_ns = ns;
}

static struct rlimit descriptors;

void live_take_descriptors(void)
{
	struct rlimit none;

	OK(getrlimit(RLIMIT_NOFILE, &descriptors));
	none = (struct rlimit){.rlim_max = descriptors.rlim_max};
	OK(setrlimit(RLIMIT_NOFILE, &none));
}

void live_give_descriptors(void)
{
	OK(setrlimit(RLIMIT_NOFILE, &descriptors));
}

/* Files that replace those of the kernel, and the replaced descriptors. */
#define SCRIPTS_MAX 64
static struct script {
	int *fd;
	int own;
} scripts[SCRIPTS_MAX];

/* Returns the script of that file, or a free one if fd is NULL. */
static struct script *script_of(const int *fd)
{
	for (size_t i = 0; i < SCRIPTS_MAX; i++)
		if (scripts[i].fd == fd)
			return &scripts[i];
	ck_assert_ptr_nonnull(fd);
	return NULL;
}

void live_script(int *fd, const char *text)
{
	const int said = suite_file(text);

	if (script_of(fd) == NULL)
		*script_of(NULL) = (struct script){fd, *fd};
	else
		close_fd(fd);
	*fd = said;
}

void live_unscript(int *fd)
{
	struct script *s = script_of(fd);

	if (s == NULL)
		return;
	close_fd(fd);
	*fd = s->own;
	s->fd = NULL;
}

void live_tick_running(struct live *l, struct thread *th)
{
	live_script(&th->activity.syscall_fd, "running\n");
	sleepers_wake(th);
	live_tick(l);
	live_unscript(&th->activity.syscall_fd);
}

/* When the test began to wait for the program that was started last; 0: not yet. */
static uint64_t waiting_since;

void live_patience(void)
{
	if (waiting_since == 0)
		waiting_since = now_ns();
	ck_assert_msg(now_ns() - waiting_since < LIVE_PATIENCE_S * NS_PER_SEC,
		      "what the test waits for does not come");
}

static void on_event(void *ctx, uint32_t target, enum capture_event event)
{
	struct live *l = ctx;

	/* A test may have added other targets. */
	if (target != LIVE_TARGET)
		return;
	switch (event) {
	case CAPTURE_GONE:
		l->gone++;
		break;
	case CAPTURE_EXEC:
		l->execs++;
		break;
	case CAPTURE_OTHER_RIGHTS:
		l->other_rights++;
		break;
	case CAPTURE_FOREIGN:
		ck_abort_msg("a 32-bit program");
	case CAPTURE_OTHER_TRACER:
		l->other_tracer++;
		break;
	}
}

static bool on_executed(void *ctx, int32_t pid)
{
	struct live *l = ctx;

	l->executed = pid;
	return true;
}

static void on_crash(void *ctx, uint32_t target, const struct capture_crash *crash)
{
	struct live *l = ctx;

	if (target != LIVE_TARGET)
		return;
	l->crash = *crash;
	l->crashes += crash->left;
	l->crashes_traced += !crash->left;
}

static void block_sigchld(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	OK(sigprocmask(SIG_BLOCK, set, NULL));
}

void live_block_signals(void)
{
	sigset_t set;

	block_sigchld(&set);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	OK(sigprocmask(SIG_BLOCK, &set, NULL));
}

void live_start(struct live *l, const char *name, const char *argument, const char *argument2)
{
	char path[PATH_MAX];
	int in[2], out[2];
	sigset_t none;

	waiting_since = 0;
	memset(scripts, 0, sizeof(scripts));
	later_ns = still_ns = step_ns = 0;
	suite_target(name, path, sizeof(path));
	OK(pipe2(in, O_CLOEXEC));
	OK(pipe2(out, O_CLOEXEC));
	l->child = fork();
	ck_assert_int_ge(l->child, 0);
	if (l->child == 0) {
		sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		if (dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0)
			(void)execl(path, name, argument, argument2, NULL);
		_exit(127);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	l->in = in[1];
	l->out = out[0];
	l->first = (pid_t)live_answer(l, "ready");
	l->pid = l->child;
	l->pidfd = (int)syscall(SYS_pidfd_open, l->pid, 0);
	ck_assert_int_ge(l->pidfd, 0);
}

static void on_born(void *ctx, int32_t pid)
{
	struct live *l = ctx;

	l->born = pid;
}

void live_open(struct live *l, size_t ring_bytes)
{
	const struct capture_options options = {
		.now_ns = capture_now_ns,
		.process_ns = clock_process_ns,
		.switches = switches,
		.perf = l->perf,
		.beat = &l->beat,
		.event = on_event,
		.executed = l->holds_execs ? on_executed : NULL,
		.crashed = l->leaves_crashes ? on_crash : NULL,
		.born = l->follow_children ? on_born : NULL,
		.ctx = l,
	};

	live_block_signals();
	OK(ring_writer_init(&l->sink.ring, ring_bytes));
	OK(ring_reader_init(&l->reader, l->sink.ring.fd));
	OK(capture_new(&options, &l->capture));
	l->threads = calloc(LIVE_THREADS_MAX, sizeof(*l->threads));
	ck_assert_ptr_nonnull(l->threads);
	l->reads = true;
	l->tick_ns = LIVE_TICK_NS;
}

struct traced_process *live_bare_target(struct capture *c)
{
	struct traced_process *t = calloc(1, sizeof(*t));

	ck_assert_ptr_nonnull(t);
	t->capture = c;
	t->proc_fd = t->task_fd = t->pagemap_fd = -1;
	t->schedule.rate_ticks = t->schedule.rate_of = 1;
	ck_assert_int_eq(targets_add(t), 0);
	return t;
}

/*
 * Calls capture_add() with the clock stopped. Otherwise a slow test machine could exceed the time
 * limit of a scan.
 */
int live_add(struct live *l)
{
	const uint64_t was_ns = still_ns;
	int r;

	if (still_ns == 0)
		still_ns = now_ns();
	r = capture_add(l->capture, LIVE_TARGET, l->pid, l->pidfd, &l->sink, &l->counters, l->tick);
	still_ns = was_ns;
	return r;
}

/*
 * Capture leaves a thread that cannot be attached to within milliseconds to a later tick, because
 * it may be in an exec. Here the tracer only waits for a processor, so the scan is repeated at
 * once.
 */
void live_attach(struct live *l)
{
	struct traced_process *t;

	OK(live_add(l));
	t = l->capture->targets->target;
	for (; t->scan.held_up_ticks != 0; live_patience())
		(void)!attach_scan(t);
	l->counters.threads = t->threads.n;
}

static const struct live nothing = {.pidfd = -1, .in = -1, .out = -1};

void live_prepare(struct live *l)
{
	*l = nothing;
	live_start(l, "cap_threads", NULL, NULL);
	live_open(l, LIVE_RING_BYTES);
}

void live_prepare_leaderless(struct live *l)
{
	*l = nothing;
	live_start(l, "cap_threads", "leaderless", NULL);
	live_until_state(NULL, l->pid, 'Z');
	live_open(l, LIVE_RING_BYTES);
}

void live_begin(struct live *l, const char *name, const char *argument, const char *argument2)
{
	*l = nothing;
	live_start(l, name, argument, argument2);
	live_open(l, LIVE_RING_BYTES);
	live_attach(l);
}

void live_begin_without_exit(struct live *l, const char *name)
{
	*l = nothing;
	live_start(l, name, NULL, NULL);
	live_open(l, LIVE_RING_BYTES);
	OK(ptrace(PTRACE_SEIZE, l->pid, NULL, PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD));
	live_attach(l);
}

void live_end(struct live *l)
{
	int status;
	pid_t pid;

	close_fd(&l->in);
	(void)kill(l->child, SIGKILL);
	while (l->capture != NULL && l->counters.threads > 0 &&
	       l->gone + l->other_tracer + l->crashes == 0)
		live_wait(l);
	/* Takes the statuses of threads that capture did not know, too. */
	while ((pid = waitpid(-1, &status, __WALL)) > 0)
		if (WIFSTOPPED(status))
			(void)ptrace(PTRACE_CONT, pid, NULL, NULL);
	capture_free(l->capture);
	ring_reader_fini(&l->reader);
	ring_writer_fini(&l->sink.ring);
	close_fd(&l->out);
	close_fd(&l->pidfd);
	free(l->threads);
}

void live_say(struct live *l, const char *line)
{
	size_t n = strlen(line);

	ck_assert_int_eq(write(l->in, line, n), (ssize_t)n);
	ck_assert_int_eq(write(l->in, "\n", 1), 1);
}

/*
 * Reads the next byte of the answer. Handles the target's stops meanwhile, without which it would
 * not answer.
 */
static char next_byte(struct live *l)
{
	char byte;
	ssize_t n;

	OK(fcntl(l->out, F_SETFL, O_NONBLOCK));
	for (;;) {
		n = read(l->out, &byte, 1);
		if (n == 1)
			return byte;
		ck_assert_msg(n < 0 && errno == EAGAIN, "the program has ended");
		if (l->capture != NULL)
			live_reap(l);
		live_patience();
	}
}

long live_answer(struct live *l, const char *word)
{
	char line[128];
	size_t n = strlen(word), i = 0;

	while (i < sizeof(line) - 1 && (line[i] = next_byte(l)) != '\n')
		i++;
	line[i] = '\0';
	ck_assert_msg(strncmp(line, word, n) == 0 && line[n] == ' ', "\"%s\" instead of \"%s\"",
		      line, word);
	return strtol(line + n, NULL, 10);
}

long live_ask(struct live *l, const char *line, const char *word)
{
	live_say(l, line);
	return live_answer(l, word);
}

long live_count(struct live *l, const char *word)
{
	return live_ask(l, word, word);
}

struct thread *live_known(const struct live *l, pid_t tid)
{
	struct thread *th = tracees_find(l->capture, (uint32_t)tid);

	ck_assert_ptr_nonnull(th);
	return th;
}

void live_reap(struct live *l)
{
	l->more = capture_reap(l->capture);
	if (l->reads)
		live_read(l);
}

/* Returns false if no target has a tick now: the daemon skips such ticks. */
static bool is_due(const struct live *l)
{
	const uint64_t now = (still_ns != 0 ? still_ns : now_ns()) + later_ns;

	return l->tick >= capture_next_tick(l->capture) || now >= capture_timeout_ns(l->capture);
}

void live_look(struct live *l, uint64_t number)
{
	const struct tick tick = {.number = number,
				  .begin_ns = number * l->tick_ns,
				  .period_ns = l->tick_ns,
				  .due_ns = number * l->tick_ns};

	capture_tick(l->capture, &tick);
}

void live_tick_late(struct live *l, uint64_t ticks)
{
	l->tick += ticks;
	if (is_due(l))
		live_look(l, l->tick);
	/* Handles what SIGCHLD would have announced. */
	l->more = capture_reap(l->capture);
	if (l->reads)
		live_read(l);
}

void live_tick(struct live *l)
{
	live_tick_late(l, 1);
}

/*
 * Returns true if only the leader is left, from which capture has detached because it dies. Only
 * the parent gets its status.
 */
static bool leader_dies(const struct live *l)
{
	const struct traced_process *t = state_next(l->capture, NULL);

	return t != NULL && t->exec.leader_dies && t->threads.n == 0;
}

void live_wait(struct live *l)
{
	const struct timespec second = {.tv_sec = 1};
	sigset_t set;

	block_sigchld(&set);
	if (leader_dies(l))
		live_tick(l);
	else if (!l->more)
		(void)sigtimedwait(&set, NULL, &second);
	live_reap(l);
	live_patience();
}

void live_settle(struct live *l)
{
	live_reap(l);
	while (capture_pending(l->capture) > 0)
		live_wait(l);
}

static struct live_thread *find(struct live *l, uint32_t tid)
{
	/* Searches from the newest, because the kernel reuses thread ids. */
	for (size_t i = l->n_threads; i-- > 0;)
		if (l->threads[i].tid == tid)
			return &l->threads[i];
	return NULL;
}

const struct live_thread *live_thread(const struct live *l, pid_t tid)
{
	for (size_t i = l->n_threads; i-- > 0;)
		if (l->threads[i].tid == (uint32_t)tid)
			return &l->threads[i];
	ck_abort_msg("thread %d was not announced", (int)tid);
	return NULL;
}

static void see_thread(struct live *l, const struct record_thread *record)
{
	struct live_thread *th = find(l, record->h.tid);

	if (th == NULL || th->exited) {
		ck_assert_uint_lt(l->n_threads, LIVE_THREADS_MAX);
		th = &l->threads[l->n_threads++];
		*th = (struct live_thread){.tid = record->h.tid};
	}
	th->announced = true;
	th->is_main = record->is_main;
	memcpy(th->comm, record->comm, COMM_SIZE);
}

/* Returns the thread of a record that may only come while the reader knows the thread. */
static struct live_thread *known(struct live *l, const struct record *record)
{
	struct live_thread *th = find(l, record->tid);

	ck_assert_msg(th != NULL && th->announced && !th->exited,
		      "a record of thread %u, which is not there", record->tid);
	ck_assert_uint_ge(record->tick, th->last_tick);
	th->last_tick = record->tick;
	return th;
}

static void see_sample(struct live *l, const struct record_sample *record, size_t size)
{
	struct live_thread *th = known(l, &record->h);

	ck_assert_uint_ge(size, sizeof(*record));
	ck_assert_uint_le(record->stack_size, size - sizeof(*record));
	ck_assert_msg(th->samples == 0 || record->h.tick > th->last_sample_tick || th->missing,
		      "two samples of thread %u at tick %u", th->tid, (unsigned int)record->h.tick);
	ck_assert_uint_ge(record->h.time_ns, l->settled_ns);
	th->samples++;
	th->running += (record->flags & SAMPLE_RUNNING) != 0;
	th->missing = false;
	th->last_sample_tick = record->h.tick;
	th->sp = record->regs[ARCH_SP];
	th->flags = record->flags;
	th->stack_size = record->stack_size;
}

static void forget_all(struct live *l)
{
	for (size_t i = 0; i < l->n_threads; i++)
		l->threads[i].exited = true;
}

static void see_tick(struct live *l, const struct record_tick *record)
{
	ck_assert_uint_ge(record->settled_ns, l->settled_ns);
	ck_assert_uint_le(record->settled_ns, record->h.time_ns);
	l->settled_ns = record->settled_ns;
}

/* RECORD_WAITING: the thread's last sample says something else. */
static void see_state(struct live *l, const struct record *record)
{
	const struct live_thread *th = known(l, record);

	ck_assert((th->flags & (SAMPLE_RUNNING | SAMPLE_READY)) != 0 ||
		  record->ring.type != RECORD_WAITING);
	ck_assert_uint_gt(record->tick, th->last_sample_tick);
	ck_assert_uint_ge(record->time_ns, l->settled_ns);
}

static void see(struct live *l, const struct record *record, size_t size)
{
	uint32_t type = record->ring.type;

	ck_assert_uint_ge(size, sizeof(*record));
	ck_assert_uint_lt(type, LIVE_TYPES);
	ck_assert_uint_eq(record->target, LIVE_TARGET);
	ck_assert_msg(!l->ended, "a record after the last");
	l->records[type]++;
	switch ((enum record_type)type) {
	case RECORD_TICK:
		see_tick(l, (const void *)record);
		break;
	case RECORD_THREAD:
		see_thread(l, (const void *)record);
		break;
	case RECORD_SAMPLE:
		see_sample(l, (const void *)record, size);
		break;
	case RECORD_MISSED:
		known(l, record)->missing = true;
		break;
	case RECORD_EXIT:
		known(l, record)->exited = true;
		break;
	case RECORD_EXEC:
	case RECORD_RESET:
		forget_all(l);
		break;
	case RECORD_END:
		l->ended = true;
		break;
	case RECORD_READY:
	case RECORD_WAITING:
	case RECORD_RUNNING:
		see_state(l, record);
		break;
	case RECORD_WATCHED:
		ck_assert_uint_ge(size, sizeof(l->watched));
		memcpy(&l->watched, record, sizeof(l->watched));
		break;
	}
}

void live_read(struct live *l)
{
	const struct ring_record *record;
	size_t size;
	int r;

	OK(ring_advance(&l->reader, l->sink.ring.head));
	while ((r = ring_next(&l->reader, &record, &size)) > 0) {
		see(l, (const void *)record, size);
		ring_release(&l->reader, size);
	}
	ck_assert_int_eq(r, 0);
	OK(ring_credit(&l->sink.ring, l->reader.tail));
}

void live_ticks(struct live *l, unsigned int n)
{
	while (n-- > 0) {
		live_until_all_run(l);
		live_tick(l);
		live_settle(l);
	}
}

uint64_t live_missed(const struct live *l)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < MISSED_N; i++)
		sum += l->counters.missed[i];
	return sum;
}

void live_check_sum(const struct live *l)
{
	const struct capture_counters *c = &l->counters;

	ck_assert_uint_eq(capture_pending(l->capture), 0);
	ck_assert_uint_eq(c->expected, c->captured + c->repeated + c->filled + live_missed(l));
}
