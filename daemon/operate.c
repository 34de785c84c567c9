#include "daemon/operate.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/broker.h"
#include "daemon/lifecycle.h"
#include "daemon/log.h"
#include "daemon/process.h"
#include "daemon/status.h"
#include "lib/base/clock.h"

/*
 * What they cost, in small messages (daemon/allowance.h). To attach is dear for
 * a user: a process of his can make capture hang for a second.
 */
#define STATUS_WORK	 10
#define STATUS_WORK_EACH 2
#define ATTACH_WORK	 10
#define ATTACH_WORK_USER 5000

__attribute__((format(printf, 3, 4))) static void
refuse(struct control_answer *ret, enum protocol_result result,
       const char *format, ...)
{
	va_list args;

	ret->m.result = result;
	va_start(args, format);
	(void)vsnprintf(ret->m.text, sizeof(ret->m.text), format, args);
	va_end(args);
}

/*
 * A process whose files in /proc are not its user's has changed its rights, or
 * runs a file that he may not read: it is not his alone.
 */
static bool is_own(const struct peer *is, int32_t pid, uint32_t uid)
{
	char path[32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	return is->uid == uid && stat(path, &st) == 0 && st.st_uid == uid;
}

static bool may(const struct peer *is, const struct instance *i)
{
	return is->is_operator || is_own(is, i->pid, i->uid);
}

static enum protocol_result result_of(enum lifecycle_result result)
{
	switch (result) {
	case LIFECYCLE_OK:
		return PROTOCOL_OK;
	case LIFECYCLE_RUNS_ALREADY:
		return PROTOCOL_RUNS_ALREADY;
	case LIFECYCLE_NOT_RUNNING:
	case LIFECYCLE_MANUAL_SPAN:
	case LIFECYCLE_NO_SPAN:
		return PROTOCOL_NOT_RUNNING;
	case LIFECYCLE_NOT_SAMPLED:
		return PROTOCOL_NOT_SAMPLED;
	case LIFECYCLE_TRACE_START:
	case LIFECYCLE_TRACE_STOP:
		return PROTOCOL_TRACE_MODE;
	}
	return PROTOCOL_FAILED;
}

/* Its id now, or of the start that comes. */
static void put_id(const struct instance *i, struct protocol_answer *ret)
{
	const char *id = i->target != NULL && target_is_open(i->target)
				 ? i->target->profiler_id
				 : i->next_profiler_id;

	(void)snprintf(ret->profiler_id, sizeof(ret->profiler_id), "%s", id);
}

static void tell_of(struct broker *b, const struct instance *i,
		    struct protocol_answer *ret)
{
	ret->pid = i->pid;
	ret->state = status_state(b, i);
	if (ret->state == PROTOCOL_PROFILING)
		put_id(i, ret);
}

/* NULL: has said why. */
static struct instance *find(struct broker *b, const struct peer *is,
			     int32_t pid, struct control_answer *ret)
{
	struct instance *i = instance_of_pid(b, pid);
	struct process look;
	enum process_fault fault;

	if (i != NULL && !may(is, i)) {
		ret->m.result = PROTOCOL_DENIED;
		return NULL;
	}
	if (i != NULL)
		return i;
	fault = process_look(pid, &look);
	close_fd(&look.pidfd);
	ret->m.result = fault == PROCESS_GONE || fault == PROCESS_ZOMBIE
				? PROTOCOL_NO_PROCESS
				: PROTOCOL_NO_TARGET;
	return NULL;
}

static enum protocol_result change(struct instance *i, uint32_t type)
{
	if (i->is_detached || i->is_left_out)
		return PROTOCOL_LEFT_OUT;
	return result_of(type == PROTOCOL_START ? lifecycle_start(i)
						: lifecycle_stop(i));
}

/* All of a section that the peer may; OK if there are any. */
static void change_all(struct broker *b, const struct peer *is,
		       const struct protocol_request *m,
		       struct control_answer *ret)
{
	size_t known = 0, allowed = 0;

	for (size_t k = 0; k < b->n_instances; k++) {
		struct instance *i = b->instances[k];

		if (i->has_ended || i->is_removed ||
		    strcmp(i->config.name, m->name) != 0)
			continue;
		known++;
		if (!may(is, i))
			continue;
		allowed++;
		ret->m.count += change(i, m->h.type) == PROTOCOL_OK;
	}
	ret->work += (uint32_t)known;
	if (known == 0)
		refuse(ret, PROTOCOL_NO_TARGET,
		       "no process belongs to [target \"%s\"]", m->name);
	else if (allowed == 0)
		ret->m.result = PROTOCOL_DENIED;
}

static void start_or_stop(struct broker *b, const struct peer *is,
			  const struct protocol_request *m,
			  struct control_answer *ret)
{
	struct instance *i;

	if (m->name[0] != '\0') {
		change_all(b, is, m, ret);
		return;
	}
	i = find(b, is, m->pid, ret);
	if (i == NULL)
		return;
	ret->m.result = change(i, m->h.type);
	tell_of(b, i, &ret->m);
}

static void tell_profiler_id(struct broker *b, const struct peer *is,
			     const struct protocol_request *m,
			     struct control_answer *ret)
{
	struct instance *i = find(b, is, m->pid, ret);

	if (i == NULL)
		return;
	tell_of(b, i, &ret->m);
	if (ret->m.profiler_id[0] == '\0')
		ret->m.result = PROTOCOL_NOT_RUNNING;
}

/* Whatever was decided or found out about it, it is to be profiled. */
static void take_again(struct instance *i, struct control_answer *ret)
{
	if (!i->is_detached && !i->is_left_out && i->is_sampled &&
	    lifecycle_wants(i)) {
		ret->m.result = PROTOCOL_RUNS_ALREADY;
		return;
	}
	i->is_detached = false;
	i->is_left_out = false;
	i->last_error[0] = '\0';
	i->is_sampled = true;
	i->config.lifecycle = LIFECYCLE_MANUAL;
	i->is_started = true;
}

static void refuse_fault(enum process_fault fault, int32_t pid,
			 struct control_answer *ret)
{
	switch (fault) {
	case PROCESS_GONE:
	case PROCESS_ZOMBIE:
		ret->m.result = PROTOCOL_NO_PROCESS;
		return;
	case PROCESS_KERNEL_THREAD:
		refuse(ret, PROTOCOL_FAILED,
		       "is a kernel thread: it has no user stack to profile");
		return;
	case PROCESS_THREAD:
		refuse(ret, PROTOCOL_FAILED, "is a thread of process %d", pid);
		return;
	case PROCESS_OK:
	case PROCESS_TRACED:
	case PROCESS_UNREADABLE:
		break;
	}
	refuse(ret, PROTOCOL_FAILED, "cannot be looked at");
}

static size_t attached_of(const struct broker *b, uint32_t uid)
{
	size_t n = 0;

	for (size_t k = 0; k < b->n_instances; k++)
		n += b->instances[k]->is_attached &&
		     b->instances[k]->uid == uid;
	return n;
}

/* p's pidfd is closed, or the instance's. */
static struct instance *attach_new(struct broker *b, const struct peer *is,
				   struct process *p,
				   struct control_answer *ret)
{
	struct instance *i = NULL;
	int r;

	if (!is->is_operator && !is_own(is, p->pid, p->uid))
		ret->m.result = PROTOCOL_DENIED;
	else if (!is->is_operator &&
		 attached_of(b, is->uid) >= OPERATE_ATTACHED_MAX)
		refuse(ret, PROTOCOL_BUSY,
		       "%d processes of this user are attached: detach one",
		       OPERATE_ATTACHED_MAX);
	else if (p->pid == getpid())
		refuse(ret, PROTOCOL_FAILED, "is sentry-profd itself");
	else {
		r = instance_add_attached(b, p, &i);
		if (r == 0)
			return i;
		refuse(ret, r == -ENOSPC ? PROTOCOL_BUSY : PROTOCOL_FAILED,
		       "cannot be attached: %s",
		       r == -ENOSPC ? "there are too many targets"
				    : strerror(-r));
	}
	close_fd(&p->pidfd);
	return NULL;
}

static void attach(struct broker *b, const struct peer *is,
		   const struct protocol_request *m,
		   struct control_answer *ret)
{
	struct instance *i = instance_of_pid(b, m->pid);
	enum process_fault fault;
	struct process look;

	ret->work = is->is_operator ? ATTACH_WORK : ATTACH_WORK_USER;
	if (i != NULL && !may(is, i)) {
		ret->m.result = PROTOCOL_DENIED;
		return;
	}
	if (i != NULL) {
		take_again(i, ret);
	} else {
		fault = process_look(m->pid, &look);
		if (fault != PROCESS_OK && fault != PROCESS_TRACED) {
			refuse_fault(fault, look.pid, ret);
			return;
		}
		i = attach_new(b, is, &look, ret);
	}
	if (i != NULL)
		tell_of(b, i, &ret->m);
}

static void detach(struct broker *b, const struct peer *is,
		   const struct protocol_request *m,
		   struct control_answer *ret)
{
	struct instance *i = find(b, is, m->pid, ret);

	if (i == NULL)
		return;
	if (i->is_detached)
		ret->m.result = PROTOCOL_LEFT_OUT;
	i->is_detached = true;
	/* No section would have it: nobody has to know that it is left out. */
	if (i->is_attached)
		instance_remove(i);
	ret->m.pid = i->pid;
	ret->m.state = PROTOCOL_IS_LEFT_OUT;
}

static void status(struct broker *b, const struct peer *is,
		   struct control_answer *ret)
{
	int r = status_make(b, is, &ret->fd, &ret->m.fd_bytes);

	ret->work = STATUS_WORK + STATUS_WORK_EACH * (uint32_t)b->n_instances;
	if (r < 0)
		refuse(ret, PROTOCOL_FAILED, "%s", strerror(-r));
}

static void reload(const struct peer *is, struct control_answer *ret)
{
	if (!is->is_operator)
		ret->m.result = PROTOCOL_DENIED;
	else
		refuse(ret, PROTOCOL_FAILED,
		       "it was started with --pid: there is no configuration "
		       "to be read again");
}

void operate_ask(void *ctx, struct control_peer *peer,
		 const struct protocol_request *m, struct control_answer *ret)
{
	struct broker *b = ctx;

	switch ((enum protocol_type)m->h.type) {
	case PROTOCOL_START:
	case PROTOCOL_STOP:
		start_or_stop(b, &peer->is, m, ret);
		return;
	case PROTOCOL_PROFILER_ID:
		tell_profiler_id(b, &peer->is, m, ret);
		return;
	case PROTOCOL_ATTACH:
		attach(b, &peer->is, m, ret);
		return;
	case PROTOCOL_DETACH:
		detach(b, &peer->is, m, ret);
		return;
	case PROTOCOL_STATUS:
		status(b, &peer->is, ret);
		return;
	case PROTOCOL_RELOAD:
		reload(&peer->is, ret);
		return;
	case PROTOCOL_SPANS_OPEN:
	case PROTOCOL_SPANS_CLOSED:
	case PROTOCOL_THREAD:
	case PROTOCOL_HELLO:
	case PROTOCOL_ANSWER:
		break;
	}
	refuse(ret, PROTOCOL_FAILED, "not known here");
}

static int page(void *ctx, struct control_peer *peer, int *ret_fd)
{
	(void)ctx;
	(void)peer;
	(void)ret_fd;
	return -ENOTSUP;
}

void operate_gone(void *ctx, struct control_peer *peer)
{
	(void)ctx;
	(void)peer;
}

static const struct control_user user = {
	.ask = operate_ask,
	.page = page,
	.gone = operate_gone,
};

static const char *fault_text(int error)
{
	switch (error) {
	case EADDRINUSE:
		return "another sentry-profd listens there";
	case EEXIST:
		return "something that is no socket is there";
	case EPERM:
		return "others may write in its directory, or it is theirs: "
		       "they could put another socket in its place";
	case ENAMETOOLONG:
		return "the name of a socket has at most 107 bytes";
	default:
		return strerror(error);
	}
}

int operate_open(struct broker *b)
{
	const char *path = b->options.socket;
	int r;

	if (path == NULL)
		return 0;
	r = control_new(path, &user, b, geteuid(), &b->control);
	if (r < 0)
		log_error("cannot listen at %s: %s", path, fault_text(-r));
	return r;
}

int operate_start(struct broker *b)
{
	return b->control == NULL ? 0 : control_start(b->control, b->loop);
}

void operate_check(struct broker *b)
{
	if (b->control != NULL)
		control_check(b->control, clock_mono_ns());
}

void operate_close(struct broker *b)
{
	control_free(b->control);
	b->control = NULL;
}
