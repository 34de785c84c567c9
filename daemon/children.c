#include "daemon/broker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/accounts.h"
#include "daemon/child.h"
#include "daemon/log.h"
#include "daemon/spawn.h"
#include "lib/base/clock.h"

/* A child that ends sooner than this after its start has failed to work. */
#define SETTLED_NS (10 * NS_PER_SEC)

/* The wait before another start: none, then doubling up to this. */
#define BACKOFF_FIRST_NS (100 * NS_PER_MS)
#define BACKOFF_MAX_NS	 (5 * NS_PER_SEC)

/* How often it is told that a child does not start, or does not last. */
#define SAY_EVERY_NS (60 * NS_PER_SEC)

/* How long the children may take to end by themselves. */
#define END_MS 2500

/*
 * What was killed is gone at once, as a rule. It may take a moment if it traces
 * thousands of threads; and for ever if it is in a read of a target's memory
 * that only a FUSE server can end (request_wait_answer() in fs/fuse/dev.c).
 */
#define KILLED_MS 2000

/* More than the socket's buffer holds: what a child left there when it died. */
#define LEFT_MESSAGES_MAX 4096

static const char *const no_environment[] = {NULL};

/* libcurl's proxies and the certificate authorities. */
static const char *const ship_environment[] = {
	"http_proxy",	"https_proxy", "HTTPS_PROXY", "all_proxy",
	"ALL_PROXY",	"no_proxy",    "NO_PROXY",    "SSL_CERT_FILE",
	"SSL_CERT_DIR", NULL,
};

/* One that ends now is replaced by another. */
static bool is_wanted(const struct child *child)
{
	const struct broker *b = child->broker;

	if (b->ending)
		return false;
	if (child == &b->capture)
		return !b->capture_done && b->ended_ns == 0 && !b->pausing;
	return child == &b->ship || !b->stopping;
}

void child_fail(struct child *child, const char *why)
{
	if (child->pid == 0 || child->killed_ns != 0)
		return;
	log_warning("%s (pid %d) %s: it is %s", child->name, child->pid, why,
		    is_wanted(child) ? "replaced" : "ended");
	(void)kill(child->pid, SIGKILL);
	child->killed_ns = clock_mono_ns();
	loop_remove(child->broker->loop, &child->source);
	close_fd(&child->fd);
}

void child_send(struct child *child, const void *message, size_t size,
		const int *fds, size_t n_fds)
{
	int r;

	if (child->fd < 0)
		return;
	r = ipc_send(child->fd, message, size, fds, n_fds);
	/* EPIPE: it has ended, SIGCHLD is on its way. */
	if (r < 0 && r != -EPIPE)
		child_fail(child, "does not take its messages");
}

static void close_socket(struct child *child)
{
	loop_remove(child->broker->loop, &child->source);
	close_fd(&child->fd);
}

static void on_child(void *ctx)
{
	struct child *child = ctx;
	struct ipc_message m;
	int r = ipc_recv(child->fd, &m);

	if (r == -EAGAIN)
		return;
	if (r == 0) {
		/* Its end of the socket is closed; SIGCHLD says the rest. */
		close_socket(child);
		return;
	}
	if (r < 0) {
		child_fail(child, "breaks the rules of its socket");
		return;
	}
	child->on_message(child, &m);
	ipc_close_fds(&m);
}

/*
 * What it sent before it died counts. The socket need not have an end: a child
 * may have handed its own on.
 */
static void take_last_messages(struct child *child)
{
	struct pollfd readable = {.fd = child->fd, .events = POLLIN};

	for (int i = 0; i < LEFT_MESSAGES_MAX && child->fd >= 0 &&
			poll(&readable, 1, 0) > 0;
	     i++)
		on_child(child);
	close_socket(child);
}

/* The first failure in a row, and then one a minute: it may go on for ever. */
static bool is_worth_saying(struct child *child)
{
	uint64_t now = clock_mono_ns();

	if (child->said_ns != 0 && now - child->said_ns < SAY_EVERY_NS)
		return false;
	child->said_ns = now;
	return true;
}

static int start(struct child *child, const char *const *environment,
		 enum account account, int init_fd)
{
	struct broker *b = child->broker;
	struct msg_init init = {
		.h = MSG_HEADER(MSG_INIT, msg_init),
		.uid = MSG_ID_KEEP,
		.gid = MSG_ID_KEEP,
		.debug = b->options.debug,
		.seccomp_kill = getenv("SENTRY_PROFD_SECCOMP_KILL") != NULL,
	};
	int r;

	if (b->privileged)
		account_ids(account, &init.uid, &init.gid);
	r = spawn_child(child->name, environment, &child->pid, &child->fd);
	if (r < 0) {
		if (child->failures == 0 || is_worth_saying(child))
			log_error("%s cannot be started: %s", child->name,
				  strerror(-r));
		return r;
	}
	child->started_ns = clock_mono_ns();
	child->restart_ns = 0;
	child->killed_ns = 0;
	r = loop_add(b->loop, child->fd, on_child, child, &child->source);
	if (r < 0) {
		child_fail(child, "cannot be listened to");
		return r;
	}
	child_send(child, &init, sizeof(init), &init_fd, init_fd < 0 ? 0 : 1);
	return 0;
}

/* Sealed in its size: shrunk, it would be a SIGBUS for us who read it. */
static int new_heartbeat(struct broker *b, int *ret_fd)
{
	int fd = memfd_create("heartbeat", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *page;
	int r;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(struct heartbeat)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) <
		    0)
		goto fail;
	page = mmap(NULL, sizeof(struct heartbeat), PROT_READ, MAP_SHARED, fd,
		    0);
	if (page == MAP_FAILED)
		goto fail;
	if (b->heartbeat != NULL)
		(void)munmap(b->heartbeat, sizeof(*b->heartbeat));
	b->heartbeat = page;
	*ret_fd = fd;
	return 0;
fail:
	r = -errno;
	close_fd(&fd);
	return r;
}

int unwind_make_ring(struct broker *b, struct unwind *u)
{
	const struct msg_ring_make m = {
		.h = MSG_HEADER(MSG_RING_MAKE, msg_ring_make),
		.ring = u->id,
	};
	int pair[2], r;

	close_fd(&u->link_fd);
	if (b->capture.fd < 0)
		return 0; /* the next capture makes all rings */
	r = ipc_pair(pair);
	if (r < 0)
		return r;
	child_send(&b->capture, &m, sizeof(m), &pair[0], 1);
	close_fd(&pair[0]);
	u->link_fd = pair[1];
	u->rings_awaited++;
	return 0;
}

static int start_capture(struct broker *b)
{
	int fd = -1, r;

	r = new_heartbeat(b, &fd);
	if (r < 0) {
		if (b->capture.failures == 0 || is_worth_saying(&b->capture))
			log_error("no memory to share with %s: %s",
				  b->capture.name, strerror(-r));
		return r;
	}
	r = start(&b->capture, no_environment, ACCOUNT_CAPTURE, fd);
	close_fd(&fd);
	for (size_t i = 0; i < b->n_unwinds && r == 0; i++) {
		b->unwinds[i]->rings_awaited = 0;
		r = unwind_make_ring(b, b->unwinds[i]);
	}
	if (r < 0)
		child_fail(&b->capture, "cannot be given its rings");
	return r;
}

static int start_ship(struct broker *b)
{
	struct msg_dsn dsn = {.h = MSG_HEADER(MSG_DSN, msg_dsn)};
	int r = start(&b->ship, ship_environment, ACCOUNT_SHIP, -1);

	if (r == 0 && b->has_dsn) {
		memcpy(dsn.dsn, b->dsn, sizeof(dsn.dsn));
		child_send(&b->ship, &dsn, sizeof(dsn), NULL, 0);
		explicit_bzero(&dsn, sizeof(dsn));
	}
	return r;
}

void children_init(struct broker *b)
{
	b->capture = (struct child){.broker = b,
				    .name = "sentry-profd-capture",
				    .fd = -1,
				    .on_message = capture_on_message};
	b->ship = (struct child){.broker = b,
				 .name = "sentry-profd-ship",
				 .fd = -1,
				 .on_message = ship_on_message};
}

int children_start(struct broker *b)
{
	int r = start_ship(b);

	return r < 0 ? r : start_capture(b);
}

int children_unwind(struct broker *b, uint32_t uid, struct unwind **ret)
{
	struct unwind *u;
	int r;

	for (size_t i = 0; i < b->n_unwinds; i++)
		if (b->unwinds[i]->uid == uid) {
			*ret = b->unwinds[i];
			return 0;
		}
	u = calloc(1, sizeof(*u));
	if (u == NULL)
		return -ENOMEM;
	u->child = (struct child){.broker = b,
				  .name = "sentry-profd-unwind",
				  .fd = -1,
				  .on_message = unwind_on_message};
	u->id = (uint32_t)b->n_unwinds + 1;
	u->uid = uid;
	u->link_fd = -1;
	r = start(&u->child, no_environment, ACCOUNT_UNWIND, -1);
	if (r < 0 && u->child.pid == 0) {
		free(u);
		return r;
	}
	b->unwinds[b->n_unwinds++] = u;
	if (r == 0)
		r = unwind_make_ring(b, u);
	if (r == 0)
		*ret = u;
	else
		child_fail(&u->child, "cannot be given a ring");
	return r;
}

static void add_usage(struct child *child, const struct rusage *usage)
{
	uint64_t rss = (uint64_t)usage->ru_maxrss * 1024;

	child->usage.cpu_s +=
		(double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
		(double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) /
			1e6;
	child->usage.rss_bytes = max_u64(child->usage.rss_bytes, rss);
}

static void plan_restart(struct child *child, int status)
{
	uint64_t now = clock_mono_ns(), wait = 0;

	if (now - child->started_ns >= SETTLED_NS)
		child->failures = 0;
	if (child->failures > 0)
		wait = min_u64(BACKOFF_FIRST_NS
				       << min_u64(child->failures - 1, 16),
			       BACKOFF_MAX_NS);
	if (child->failures++ == 0)
		child->said_ns = 0;
	child->restart_ns = now + wait;
	if (!is_worth_saying(child))
		return;
	if (WIFSIGNALED(status))
		log_warning("%s was ended by signal %d: starting it again",
			    child->name, WTERMSIG(status));
	else if (WEXITSTATUS(status) == 127)
		log_error("%s cannot be executed", child->name);
	else
		log_warning("%s ended with status %d: starting it again",
			    child->name, WEXITSTATUS(status));
}

static void child_died(struct child *child, int status,
		       const struct rusage *usage)
{
	struct broker *b = child->broker;

	take_last_messages(child);
	add_usage(child, usage);
	child->pid = 0;
	if (child == &b->capture) {
		if (!b->capture_done)
			targets_capture_died(b, 0);
	} else if (child != &b->ship) {
		struct unwind *u = (struct unwind *)child;

		close_fd(&u->link_fd);
		targets_unwind_died(b, u);
	}
	if (is_wanted(child))
		plan_restart(child, status);
}

static struct child *child_of(struct broker *b, int32_t pid)
{
	if (b->capture.pid == pid)
		return &b->capture;
	if (b->ship.pid == pid)
		return &b->ship;
	for (size_t i = 0; i < b->n_unwinds; i++)
		if (b->unwinds[i]->child.pid == pid)
			return &b->unwinds[i]->child;
	return NULL;
}

void children_reap(struct broker *b)
{
	struct rusage usage;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		struct child *child = child_of(b, pid);

		if (child != NULL)
			child_died(child, status, &usage);
		else
			files_reaped(b->files, pid);
	}
}

/* It was killed and does not die: we go on as if it had. */
static void give_up(struct child *child)
{
	static const struct rusage unknown;

	log_error("%s (pid %d) cannot be killed: it hangs in the kernel, and "
		  "until it is free nobody else can trace what it traced",
		  child->name, child->pid);
	child_died(child, SIGKILL, &unknown);
}

static void check_killed(struct child *child)
{
	if (child->pid != 0 && child->killed_ns != 0 &&
	    clock_mono_ns() - child->killed_ns >= KILLED_MS * NS_PER_MS)
		give_up(child);
}

static void check_all_killed(struct broker *b)
{
	check_killed(&b->capture);
	check_killed(&b->ship);
	for (size_t i = 0; i < b->n_unwinds; i++)
		check_killed(&b->unwinds[i]->child);
}

static void start_again(struct child *child)
{
	struct broker *b = child->broker;
	struct unwind *u;
	int r;

	if (child == &b->capture) {
		r = start_capture(b);
		for (size_t i = 0; i < b->n_targets && r == 0; i++)
			target_start(b, &b->targets[i]);
	} else if (child == &b->ship) {
		r = start_ship(b);
		if (r == 0)
			delivery_resend(b);
	} else {
		u = (struct unwind *)child;
		r = start(child, no_environment, ACCOUNT_UNWIND, -1);
		/* Its ring comes when it knows of all its targets. */
		u->ring_due = r == 0;
		if (r == 0)
			targets_check(b);
	}
	if (r < 0)
		child->restart_ns = clock_mono_ns() + BACKOFF_MAX_NS;
}

static void check_restart(struct child *child)
{
	if (child->pid == 0 && child->restart_ns != 0 &&
	    clock_mono_ns() >= child->restart_ns)
		start_again(child);
}

void children_check(struct broker *b)
{
	watch_heartbeat(b);
	check_all_killed(b);
	if (b->ended_ns == 0 && !b->pausing)
		check_restart(&b->capture);
	check_restart(&b->ship);
	for (size_t i = 0; i < b->n_unwinds; i++)
		check_restart(&b->unwinds[i]->child);
}

static bool end_child(struct child *child)
{
	close_socket(child);
	return child->pid != 0;
}

static void kill_child(struct child *child)
{
	if (child->pid == 0 || child->killed_ns != 0)
		return;
	(void)kill(child->pid, SIGKILL);
	child->killed_ns = clock_mono_ns();
}

void children_end(struct broker *b)
{
	uint64_t deadline = clock_mono_ns() + END_MS * NS_PER_MS;
	bool running;

	b->ending = true;
	for (;;) {
		running = end_child(&b->capture);
		running |= end_child(&b->ship);
		for (size_t i = 0; i < b->n_unwinds; i++)
			running |= end_child(&b->unwinds[i]->child);
		if (!running)
			return;
		if (clock_mono_ns() >= deadline) {
			kill_child(&b->capture);
			kill_child(&b->ship);
			for (size_t i = 0; i < b->n_unwinds; i++)
				kill_child(&b->unwinds[i]->child);
		}
		(void)!loop_run_once(b->loop, 100);
		children_reap(b);
		check_all_killed(b);
	}
}
