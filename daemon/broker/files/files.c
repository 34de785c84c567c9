#include "daemon/broker/files/files.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon/broker/state/forks.h"
#include "daemon/common/resource_shortage.h"
#include "daemon/msg/file_request.h"
#include "daemon/process/open.h"
#include "daemon/process/process.h"
#include "daemon/process/threads.h"
#include "lib/base/clock.h"
#include "lib/base/ipc.h"

/* A helper without requests for this long is ended. Pid files are read once a second. */
#define IDLE_NS (3 * NS_PER_SEC)

struct request {
	struct request *next;
	struct open_order order;
	struct msg_file_request message;
	int pidfd; /* -1: the request is about no process */
	files_fn fn;
	void *ctx; /* fn is NULL: the request was cancelled */
};

struct files {
	struct loop *loop;
	struct request *first, **end;
	/* The helper and its socket; fd is -1 if there is none. */
	int32_t pid; /* 0: it has been reaped, the pid may be another process's */
	int fd;
	struct loop_source *source;
	uint64_t since_ns; /* when it got the present request */
	uint64_t idle_ns;  /* when it answered the last request */
	bool busy;
	uint64_t used_ns;     /* processor time of helpers that were reaped */
	uint64_t shown_ns;    /* what files_used_ns() has returned last */
	uint64_t other_owner; /* files_other_owner() */
};

struct answer {
	int32_t error;
	struct file_label file; /* set if error is 0 */
};

int files_new(struct loop *loop, struct files **ret)
{
	struct files *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	f->loop = loop;
	f->fd = -1;
	f->end = &f->first;
	*ret = f;
	return 0;
}

/* Closes the helper's socket, at which it ends. A helper that hangs is killed. */
static void drop_helper(struct files *f, bool hangs)
{
	if (f->fd < 0)
		return;
	loop_remove(f->loop, &f->source);
	close_fd(&f->fd);
	f->busy = false;
	if (hangs && f->pid != 0)
		(void)kill(f->pid, SIGKILL);
	f->pid = 0;
}

static uint64_t time_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * NS_PER_SEC + (uint64_t)time->tv_usec * NS_PER_US;
}

void files_reaped(struct files *f, int32_t pid, const struct rusage *usage)
{
	if (f->pid == pid)
		f->pid = 0;
	f->used_ns += time_ns(&usage->ru_utime) + time_ns(&usage->ru_stime);
}

uint64_t files_used_ns(struct files *f)
{
	uint64_t living_ns = 0;

	if (f->pid != 0)
		(void)!clock_process_ns(f->pid, &living_ns);
	/* The time of a helper that was dropped is not known until the helper is reaped. */
	f->shown_ns = max_u64(f->shown_ns, f->used_ns + living_ns);
	return f->shown_ns;
}

void files_count_other_owner(struct files *f)
{
	f->other_owner++;
}

uint64_t files_other_owner(const struct files *f)
{
	return f->other_owner;
}

static void free_request(struct request *r)
{
	close_fd(&r->pidfd);
	free(r);
}

void files_free(struct files *f)
{
	if (f == NULL)
		return;
	drop_helper(f, true);
	while (f->first != NULL) {
		struct request *r = f->first;

		f->first = r->next;
		free_request(r);
	}
	free(f);
}

/* Runs the helper: handles orders until the broker closes the socket. */
__attribute__((noreturn)) static void run_helper(int fd)
{
	const struct open_order *order;
	struct ipc_message m;

	/* The broker's supplementary groups must not add to what a user may open (act_as.h). */
	(void)!setgroups(0, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		struct answer answer = {0};
		int opened = -1;

		if (ipc_recv(fd, &m) <= 0 || m.size != sizeof(*order))
			_exit(0);
		order = (const void *)m.bytes;
		answer.error = -open_by_order(order, &opened);
		if (answer.error == 0)
			answer.error = -file_label_of(opened, order->owner.pid, order->start,
						      order->end, &answer.file);
		if (answer.error != 0)
			close_fd(&opened);
		if (ipc_send(fd, &answer, sizeof(answer), &opened, answer.error == 0 ? 1 : 0) < 0)
			_exit(0);
		close_fd(&opened);
	}
}

static void on_helper(void *ctx);

static int start_helper(struct files *f)
{
	int pair[2], r;
	pid_t pid;

	r = ipc_pair(pair);
	if (r < 0)
		return r;
	pid = fork();
	if (pid < 0) {
		r = -errno;
		close_fd(&pair[0]);
		close_fd(&pair[1]);
		return r;
	}
	if (pid == 0) {
		/* Ctrl-Z stops the broker, but no helper in the middle of a request. */
		(void)setpgid(0, 0);
		/* The helper keeps only this socket and the terminal. */
		if (dup2(pair[1], MSG_FD) < 0 || close_range(MSG_FD + 1, ~0u, 0) < 0)
			_exit(1);
		run_helper(MSG_FD);
	}
	close_fd(&pair[1]);
	forks_add(pid);
	f->pid = pid;
	f->fd = pair[0];
	return loop_add(f->loop, f->fd, on_helper, f, &f->source);
}

static void answer_first(struct files *f, int error, int fd, const struct file_label *file)
{
	struct request *r = f->first;

	f->first = r->next;
	if (f->first == NULL)
		f->end = &f->first;
	f->busy = false;
	f->idle_ns = clock_mono_ns();
	if (r->fn != NULL)
		r->fn(r->ctx, &r->message, error, fd, file);
	else
		close_fd(&fd);
	free_request(r);
}

/*
 * Sends the next request to the helper. The request waits while descriptors or processes are
 * short, and fails if no helper can be started for another reason. Called by the loop and by
 * files_check(), never by files_request(): its caller may still use what an answer frees.
 */
static void send_next(struct files *f)
{
	while (!f->busy && f->first != NULL) {
		int r = f->fd >= 0 ? 0 : start_helper(f);

		if (r == 0)
			r = ipc_send(f->fd, &f->first->order, sizeof(f->first->order), NULL, 0);
		if (r == 0) {
			f->busy = true;
			f->since_ns = clock_mono_ns();
			return;
		}
		drop_helper(f, true);
		if (resource_shortage_is(-r)) {
			resource_shortage_note(-r, "the helper that opens files");
			return;
		}
		answer_first(f, r, -1, NULL);
	}
}

static void on_helper(void *ctx)
{
	struct files *f = ctx;
	struct ipc_message m;
	const struct answer *answer = (const void *)m.bytes;
	int r = resource_shortage_check_descriptors();
	int fd, error;

	if (r < 0) {
		resource_shortage_note(-r, "a file that was opened");
		loop_pause(f->loop, f->source);
		return;
	}
	r = ipc_recv(f->fd, &m);
	fd = ipc_take_fd(&m, 0);
	ipc_close_fds(&m);
	if (r != 1 || m.size != sizeof(*answer) || !f->busy) {
		/* The helper has died: the request fails and is not repeated. */
		close_fd(&fd);
		drop_helper(f, true);
		if (f->first != NULL)
			answer_first(f, -EIO, -1, NULL);
		send_next(f);
		return;
	}
	error = -answer->error;
	if (error == -OPEN_OTHER_OWNER) {
		files_count_other_owner(f);
		error = -EACCES;
	}
	/* The process still lives, so the pid was its own when the file was opened. */
	if (error == 0 && f->first->pidfd >= 0 && !process_is_alive(f->first->pidfd)) {
		close_fd(&fd);
		error = -ESRCH;
	}
	answer_first(f, error, fd, error == 0 ? &answer->file : NULL);
	send_next(f);
}

static bool is_waiting(const struct files *f, const void *ctx)
{
	for (const struct request *r = f->first; r != NULL; r = r->next)
		if (r->ctx == ctx && r->fn != NULL)
			return true;
	return false;
}

/* pidfd: -1 or a duplicate, which the request takes. */
static int add_request(struct files *f, const struct msg_file_request *message,
		       const struct owner *owner, int pidfd, bool no_memory, files_fn fn, void *ctx)
{
	struct request *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	*r = (struct request){
		.order = {.owner = *owner,
			  .kind = message->kind,
			  .start = message->start,
			  .end = message->end,
			  .no_memory = no_memory},
		.message = *message,
		.pidfd = pidfd < 0 ? -1 : fcntl(pidfd, F_DUPFD_CLOEXEC, 0),
		.fn = fn,
		.ctx = ctx,
	};
	if (pidfd >= 0 && r->pidfd < 0) {
		int error = -errno;

		free(r);
		return error;
	}
	memcpy(r->order.name, message->name, sizeof(r->order.name));
	*f->end = r;
	f->end = &r->next;
	return 0;
}

int files_request(struct files *f, const struct msg_file_request *message,
		  const struct owner *owner, int pidfd, bool no_memory, files_fn fn, void *ctx)
{
	if (pidfd < 0 || file_request_check(message) != FILE_REQUEST_VALID || is_waiting(f, ctx))
		return -EINVAL;
	return add_request(f, message, owner, pidfd, no_memory, fn, ctx);
}

int files_request_own(struct files *f, const struct msg_file_request *request,
		      const struct owner *owner, int pidfd, files_fn fn, void *ctx)
{
	const bool is_own =
		request->kind == FILE_KIND_CODE_LIST || request->kind == FILE_KIND_CODE ||
		request->kind == FILE_KIND_LEAK_OPTIONS || request->kind == FILE_KIND_ENVIRON;

	if (pidfd < 0 || !is_own || is_waiting(f, ctx))
		return -EINVAL;
	return add_request(f, request, owner, pidfd, false, fn, ctx);
}

int files_request_path(struct files *f, enum file_kind kind, const char *path, files_fn fn,
		       void *ctx)
{
	static const struct owner none = {.kind = OWNER_NONE};
	struct msg_file_request message = {.kind = kind};
	const size_t n = strlen(path);

	if (n >= sizeof(message.name) || is_waiting(f, ctx))
		return -EINVAL;
	memcpy(message.name, path, n);
	return add_request(f, &message, &none, -1, false, fn, ctx);
}

void files_forget(struct files *f, const void *ctx)
{
	for (struct request *r = f->first; r != NULL; r = r->next)
		if (r->ctx == ctx)
			r->fn = NULL;
}

static bool helper_hangs(const struct files *f, uint64_t now_ns)
{
	struct pollfd answer = {.fd = f->fd, .events = POLLIN};
	const uint64_t waited_ns = now_ns - f->since_ns;

	if (!f->busy || waited_ns < FILES_TIMEOUT_MS * NS_PER_MS)
		return false;
	/* The broker itself was stopped by a signal, and the answer has come. */
	if (poll(&answer, 1, 0) > 0)
		return false;
	return !threads_any_runnable(f->pid) || waited_ns >= FILES_BUSY_MS * NS_PER_MS;
}

void files_check(struct files *f)
{
	const uint64_t now_ns = clock_mono_ns();

	if (helper_hangs(f, now_ns)) {
		drop_helper(f, true);
		answer_first(f, -ETIMEDOUT, -1, NULL);
	}
	send_next(f);
	if (!f->busy && now_ns - min_u64(now_ns, f->idle_ns) > IDLE_NS)
		drop_helper(f, false);
}
