#include "lib/client/linking.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/base/utf8.h"
#include "lib/client/connection.h"
#include "lib/client/page_copy.h"
#include "lib/client/sentry_profd.h"

/* TASK_COMM_LEN, which includes the NUL. utf8_clean() can turn each byte into three. */
#define COMM_SIZE 16
#define NAME_SIZE (3 * COMM_SIZE + 1)

/* The ids of the calling thread, cached because gettid(2) is a system call. */
struct thread_ids {
	uint32_t generation; /* struct state's when the ids were read */
	uint32_t tid, pid;
	uint32_t daemon_tid; /* the daemon's id of the thread; 0: not known */
	uint32_t n_pages;    /* struct state's when the daemon told that id */
};
static __thread struct thread_ids own_ids;

/* Prints to ret and adds a NUL. Returns the length, or -ENOBUFS with "" in ret. */
__attribute__((format(printf, 3, 4))) static int print(char *ret, size_t size, const char *format,
						       ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(ret, size, format, args);
	va_end(args);
	if (n >= 0 && (size_t)n < size)
		return n;
	if (size > 0)
		ret[0] = '\0';
	return -ENOBUFS;
}

static void get_profiler_id(const struct page_copy *copy, char ret[PROTOCOL_ID_SIZE])
{
	memset(ret, 0, PROTOCOL_ID_SIZE);
	if (copy->is_running)
		memcpy(ret, copy->page.profiler_id, PROTOCOL_ID_SIZE);
}

/* Returns false if another thread uses the connection, or the request could not be sent. */
static bool request_thread_id(struct state *s, bool is_new)
{
	const int saved = errno;
	bool is_sent;

	if (!state_enter(s))
		return false;
	is_sent = connection_request_thread_id(s, own_ids.tid, is_new);
	state_leave(s, connection_work);
	errno = saved;
	return is_sent;
}

/*
 * Returns the daemon's id of the calling thread, and requests the id if the library does not have
 * it. Returns 0 until the daemon has answered.
 */
static uint32_t daemon_thread_id(struct state *s, bool is_new)
{
	const uint32_t n_pages = load(&s->n_pages);
	uint64_t known = load(state_thread_slot(s, own_ids.tid));

	if (own_ids.daemon_tid != 0 && own_ids.n_pages == n_pages)
		return own_ids.daemon_tid;
	if (is_new || known >> 32 != own_ids.tid || (uint32_t)known == 0) {
		if (!request_thread_id(s, is_new) && is_new) {
			/* The slot may have the id of an ended thread: the next call asks, too. */
			own_ids.generation = 0;
			return 0;
		}
		known = load(state_thread_slot(s, own_ids.tid));
	}
	if (known >> 32 != own_ids.tid)
		return 0;
	own_ids.daemon_tid = (uint32_t)known;
	own_ids.n_pages = n_pages;
	return own_ids.daemon_tid;
}

static void get_thread_id(const struct page_copy *copy, char ret[SENTRY_PROFD_THREAD_ID_SIZE])
{
	struct state *s = state_get();
	const uint32_t generation = load(&s->generation);
	const bool is_new = own_ids.generation != generation;
	uint64_t id;

	if (is_new)
		own_ids = (struct thread_ids){.generation = generation,
					      .tid = (uint32_t)gettid(),
					      .pid = (uint32_t)getpid()};
	id = own_ids.tid;
	if (copy->page.thread_id == PROTOCOL_PTHREAD)
		id = (uint64_t)(uintptr_t)pthread_self();
	else if (copy->is_other_ns && own_ids.tid == own_ids.pid)
		id = load(&state_page()->pid);
	else if (copy->is_other_ns)
		id = daemon_thread_id(s, is_new);
	ret[0] = '\0';
	if (id != 0)
		(void)snprintf(ret, SENTRY_PROFD_THREAD_ID_SIZE, "%llu", (unsigned long long)id);
}

/*
 * Returns true if comm is the name that the kernel made from the file name of an executable, and
 * not one that the thread has set.
 */
static bool is_comm_of(const char *comm, const char *name)
{
	const size_t size = strlen(name);

	return size > 0 && strncmp(comm, name, COMM_SIZE - 1) == 0 &&
	       strlen(comm) == (size < COMM_SIZE ? size : COMM_SIZE - 1);
}

static bool is_of_executable(const char *comm)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *slash;

	if (is_comm_of(comm, program_invocation_short_name))
		return true;
	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	return slash != NULL && is_comm_of(comm, slash + 1);
}

/*
 * The name of the calling thread. The main thread is called "main" unless the program has given it
 * a name.
 */
static void get_name(char ret[NAME_SIZE])
{
	const int saved = errno;
	char comm[COMM_SIZE] = "";

	(void)prctl(PR_GET_NAME, comm, 0, 0, 0);
	comm[COMM_SIZE - 1] = '\0';
	if (own_ids.tid == own_ids.pid && is_of_executable(comm))
		(void)memcpy(comm, "main", sizeof("main"));
	/* The profile has the name in the same form. */
	utf8_clean(comm, false, ret, NAME_SIZE);
	errno = saved;
}

void linking_prepare(void)
{
	char id[SENTRY_PROFD_THREAD_ID_SIZE];
	struct page_copy copy;

	if (load(&state_page()->is_other_ns) && page_copy_read(&copy))
		get_thread_id(&copy, id);
}

int sentry_profd_profiler_id(char *ret, size_t size)
{
	char id[PROTOCOL_ID_SIZE] = "";
	struct page_copy copy;

	if (page_copy_read(&copy))
		get_profiler_id(&copy, id);
	return print(ret, size, "%s", id);
}

int sentry_profd_thread_id(char *ret, size_t size)
{
	char id[SENTRY_PROFD_THREAD_ID_SIZE] = "";
	struct page_copy copy;

	if (page_copy_read(&copy))
		get_thread_id(&copy, id);
	return print(ret, size, "%s", id);
}

int sentry_profd_thread_name(char *ret, size_t size)
{
	char id[SENTRY_PROFD_THREAD_ID_SIZE], name[NAME_SIZE] = "";
	struct page_copy copy;

	if (page_copy_read(&copy)) {
		get_thread_id(&copy, id);
		get_name(name);
	}
	return print(ret, size, "%s", name);
}

/* Escapes a name from get_name() for JSON. No other character of the name needs escaping. */
static void escape(const char *name, char ret[2 * NAME_SIZE])
{
	for (; *name != '\0'; name++) {
		if (*name == '"' || *name == '\\')
			*ret++ = '\\';
		*ret++ = *name;
	}
	*ret = '\0';
}

int sentry_profd_profile_context(char *ret, size_t size)
{
	char id[PROTOCOL_ID_SIZE] = "";
	struct page_copy copy;

	if (page_copy_read(&copy))
		get_profiler_id(&copy, id);
	return id[0] == '\0' ? print(ret, size, "%s", "")
			     : print(ret, size, "{\"profiler_id\":\"%s\"}", id);
}

static int thread_data(char *ret, size_t size, bool is_span)
{
	char id[SENTRY_PROFD_THREAD_ID_SIZE] = "";
	char profiler_id[PROTOCOL_ID_SIZE] = "";
	char name[NAME_SIZE], escaped[2 * NAME_SIZE];
	struct page_copy copy;

	if (page_copy_read(&copy))
		get_thread_id(&copy, id);
	if (id[0] == '\0')
		return print(ret, size, "%s", "");
	get_name(name);
	escape(name, escaped);
	if (is_span)
		get_profiler_id(&copy, profiler_id);
	return print(ret, size, "{\"thread.id\":\"%s%s%s%s%s\"}", id,
		     name[0] != '\0' ? "\",\"thread.name\":\"" : "", escaped,
		     profiler_id[0] != '\0' ? "\",\"profiler_id\":\"" : "", profiler_id);
}

int sentry_profd_trace_data(char *ret, size_t size)
{
	return thread_data(ret, size, false);
}

int sentry_profd_span_data(char *ret, size_t size)
{
	return thread_data(ret, size, true);
}
