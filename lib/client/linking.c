#include "lib/client/linking.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/client/connection.h"
#include "lib/client/seen.h"
#include "lib/client/sentry_profd.h"

/* TASK_COMM_LEN, its NUL included; each byte may become three. */
#define COMM_SIZE 16
#define NAME_SIZE (3 * COMM_SIZE + 1)

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Of the calling thread: gettid(2) is a system call. */
struct own {
	uint32_t generation; /* in which it was asked for */
	uint32_t tid, pid;
};
static __thread struct own own;

/* A text that is built up, or does not fit. */
struct text {
	char *at;
	size_t size, used;
	bool is_cut;
};

static void add(struct text *t, const char *s, size_t n)
{
	if (n >= t->size - t->used) {
		t->is_cut = true;
		return;
	}
	memcpy(t->at + t->used, s, n);
	t->used += n;
	t->at[t->used] = '\0';
}

static void add_string(struct text *t, const char *s)
{
	add(t, s, strlen(s));
}

/* false: there is no room for as much as "". */
static bool begin(struct text *t, char *ret, size_t size)
{
	*t = (struct text){.at = ret, .size = size};
	if (size > 0)
		ret[0] = '\0';
	return size > 0;
}

static int end(struct text *t)
{
	if (!t->is_cut)
		return (int)t->used;
	t->at[0] = '\0';
	return -ENOBUFS;
}

/* What is nothing but what it was made of needs no buffer of its own. */
static int give(char *ret, size_t size, const char *s)
{
	struct text t;

	if (!begin(&t, ret, size))
		return -ENOBUFS;
	add_string(&t, s);
	return end(&t);
}

static void get_profiler_id(const struct seen *seen, char ret[PROTOCOL_ID_SIZE])
{
	memset(ret, 0, PROTOCOL_ID_SIZE);
	if (seen->is_running)
		memcpy(ret, seen->page.profiler_id, PROTOCOL_ID_SIZE);
}

static void ask(struct state *s, bool is_new)
{
	const int saved = errno;

	if (state_enter(s)) {
		connection_ask_thread(s, own.tid, is_new);
		state_leave(s, connection_settle);
	}
	errno = saved;
}

/* 0: the daemon has not said yet. */
static uint32_t number_there(struct state *s, bool is_new)
{
	uint64_t known = load(state_thread(s, own.tid));

	if (is_new || known >> 32 != own.tid || (uint32_t)known == 0) {
		ask(s, is_new);
		known = load(state_thread(s, own.tid));
	}
	return known >> 32 == own.tid ? (uint32_t)known : 0;
}

static void get_thread_id(const struct seen *seen,
			  char ret[SENTRY_PROFD_THREAD_ID_SIZE])
{
	struct state *s = state_get();
	const uint32_t generation = load(&s->generation);
	const bool is_new = own.generation != generation;
	uint64_t id;

	if (is_new)
		own = (struct own){generation, (uint32_t)gettid(),
				   (uint32_t)getpid()};
	id = own.tid;
	if (seen->page.thread_id == PROTOCOL_PTHREAD)
		id = (uint64_t)(uintptr_t)pthread_self();
	else if (seen->is_other_ns && own.tid == own.pid)
		id = load(&state_page()->pid);
	else if (seen->is_other_ns)
		id = number_there(s, is_new);
	ret[0] = '\0';
	if (id != 0)
		(void)snprintf(ret, SENTRY_PROFD_THREAD_ID_SIZE, "%llu",
			       (unsigned long long)id);
}

/*
 * The length of the UTF-8 sequence at s, which ends with a NUL; 0 if it is
 * none, or too long a form, or a surrogate (RFC 3629).
 */
static size_t sequence_length(const uint8_t *s)
{
	const size_t n = s[0] < 0x80			? 1
			 : s[0] >= 0xc2 && s[0] <= 0xdf ? 2
			 : s[0] >= 0xe0 && s[0] <= 0xef ? 3
			 : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
							: 0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

static bool is_control(const uint8_t *s)
{
	return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

/* What is no text, and control characters, are replaced as in the profile. */
static void clean(const char *comm, char ret[NAME_SIZE])
{
	const uint8_t *s = (const void *)comm;
	struct text t;

	(void)begin(&t, ret, NAME_SIZE);
	while (*s != '\0') {
		size_t n = sequence_length(s);

		if (n == 0 || is_control(s))
			add_string(&t, REPLACEMENT);
		else
			add(&t, (const char *)s, n);
		s += n == 0 ? 1 : n;
	}
}

/* Is it what the kernel made of a file's name, and not a name of its own? */
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

/* The main thread is called so, unless it gave itself a name. */
static void get_name(char ret[NAME_SIZE])
{
	const int saved = errno;
	char comm[COMM_SIZE] = "";

	(void)prctl(PR_GET_NAME, comm, 0, 0, 0);
	comm[COMM_SIZE - 1] = '\0';
	if (own.tid == own.pid && is_of_executable(comm))
		(void)memcpy(comm, "main", sizeof("main"));
	clean(comm, ret);
	errno = saved;
}

void linking_prepare(void)
{
	char id[SENTRY_PROFD_THREAD_ID_SIZE];
	struct seen seen;

	if (load(&state_page()->is_other_ns) && seen_read(&seen))
		get_thread_id(&seen, id);
}

int sentry_profd_profiler_id(char *ret, size_t size)
{
	char id[PROTOCOL_ID_SIZE] = "";
	struct seen seen;

	if (seen_read(&seen))
		get_profiler_id(&seen, id);
	return give(ret, size, id);
}

int sentry_profd_thread_id(char *ret, size_t size)
{
	char id[SENTRY_PROFD_THREAD_ID_SIZE] = "";
	struct seen seen;

	if (seen_read(&seen))
		get_thread_id(&seen, id);
	return give(ret, size, id);
}

int sentry_profd_thread_name(char *ret, size_t size)
{
	char id[SENTRY_PROFD_THREAD_ID_SIZE], name[NAME_SIZE] = "";
	struct seen seen;

	if (seen_read(&seen)) {
		get_thread_id(&seen, id);
		get_name(name);
	}
	return give(ret, size, name);
}

/* A name that clean made: nothing in it but these has to be escaped. */
static void add_name(struct text *t, const char *name)
{
	for (; *name != '\0'; name++) {
		if (*name == '"' || *name == '\\')
			add(t, "\\", 1);
		add(t, name, 1);
	}
}

static void add_thread(struct text *t, const char *id)
{
	char name[NAME_SIZE];

	get_name(name);
	add_string(t, "{\"thread.id\":\"");
	add_string(t, id);
	if (name[0] != '\0') {
		add_string(t, "\",\"thread.name\":\"");
		add_name(t, name);
	}
	add_string(t, "\"");
}

int sentry_profd_profile_context(char *ret, size_t size)
{
	char id[PROTOCOL_ID_SIZE];
	struct seen seen;
	struct text t;

	if (!begin(&t, ret, size))
		return -ENOBUFS;
	if (!seen_read(&seen))
		return 0;
	get_profiler_id(&seen, id);
	if (id[0] == '\0')
		return 0;
	add_string(&t, "{\"profiler_id\":\"");
	add_string(&t, id);
	add_string(&t, "\"}");
	return end(&t);
}

static int thread_data(char *ret, size_t size, bool is_span)
{
	char id[SENTRY_PROFD_THREAD_ID_SIZE];
	char profiler_id[PROTOCOL_ID_SIZE];
	struct seen seen;
	struct text t;

	if (!begin(&t, ret, size))
		return -ENOBUFS;
	if (!seen_read(&seen))
		return 0;
	get_thread_id(&seen, id);
	if (id[0] == '\0')
		return 0;
	add_thread(&t, id);
	get_profiler_id(&seen, profiler_id);
	if (is_span && profiler_id[0] != '\0') {
		add_string(&t, ",\"profiler_id\":\"");
		add_string(&t, profiler_id);
		add_string(&t, "\"");
	}
	add_string(&t, "}");
	return end(&t);
}

int sentry_profd_trace_data(char *ret, size_t size)
{
	return thread_data(ret, size, false);
}

int sentry_profd_span_data(char *ret, size_t size)
{
	return thread_data(ret, size, true);
}
