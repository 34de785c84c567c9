#include "daemon/ctl/stack.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/common/option_fault.h"
#include "daemon/common/spawn.h"
#include "daemon/ctl/common/inputs.h"
#include "daemon/ctl/common/private_daemon.h"
#include "daemon/ctl/common/recording.h"
#include "daemon/process/process.h"
#include "daemon/process/refusal.h"
#include "lib/base/clock.h"
#include "lib/base/digits.h"
#include "lib/base/escape.h"
#include "lib/base/procfs.h"
#include "lib/base/short_names.h"
#include "lib/base/small_file.h"
#include "lib/base/string_pool.h"
#include "lib/unwind/unwind.h"

enum {
	EXIT_SIGNAL = 128,
};

/* Longer names are shown mangled. */
#define NAME_SHOWN_MAX 1024

/*
 * Seconds (chunks) until each thread should have a stack: the daemon needs several ticks to
 * find all threads of a process that has very many.
 */
#define CHUNKS_MAX 3

/* Time limit for all chunks. Reading the symbols of large files takes long. */
#define WAIT_S 30
/* The same if threads that wait have no stacks: the user knows the likely reason at once. */
#define WAIT_CPU_S 10

const char stack_help[] =
	"\n"
	"stack PID        print the stack of each thread, as profiles have it; if no\n"
	"                 daemon runs, start a sentry-profd for PID\n"
	"\n"
	"  --names full     C++ and Rust names with template arguments\n"
	"  --oracle[=NAME]  compare each stack with that of another unwinder at the\n"
	"                   same stop: libunwind (default), dwfl or all; if one\n"
	"                   differs, the exit status is 3\n";

struct stacks {
	const char *socket;
	int32_t pid;
	struct recording recording;
	unsigned int n_chunks;
	bool is_printed;
	bool full_names;
};

/* The signal that ends the process; 0: none. */
static volatile sig_atomic_t ended_by;

static void on_signal(int number)
{
	ended_by = number;
}

static const struct import_image *image_at(const struct import_chunk *c, uint64_t addr)
{
	for (size_t i = 0; i < c->n_images; i++)
		if (addr - c->images[i].addr < c->images[i].size)
			return &c->images[i];
	return NULL;
}

/*
 * Prints "name (module+0x12) at file:line"; 0x12 is the address in the file of the module. name: ""
 * if it is unknown.
 */
static void print_frame(const struct import_chunk *c, size_t n, const struct import_frame *f,
			const char *name)
{
	const struct import_image *image = image_at(c, f->addr);
	const char *base;

	printf("  #%-3zu 0x%016" PRIx64, n, f->addr);
	if (name[0] != '\0') {
		(void)putchar(' ');
		escape_write(name, stdout);
	}
	if (f->package != NULL) {
		base = strrchr(f->package, '/');
		printf(" (");
		escape_write(base != NULL ? base + 1 : f->package, stdout);
		if (image != NULL)
			printf("+0x%" PRIx64, f->addr - image->addr + image->vmaddr);
		(void)putchar(')');
	}
	if (f->file != NULL) {
		printf(" at ");
		escape_write(f->file, stdout);
		printf(":%" PRIu32, f->line);
	}
	(void)putchar('\n');
}

/* Sets shown to the n frames' functions as they are shown; "": unknown. */
static int make_names(const struct stacks *s, const struct import_chunk *c, const uint32_t *frames,
		      size_t n, struct string_pool *text, const char **shown)
{
	const char **names = calloc(n + 1, sizeof(*names));
	char demangled[NAME_SHOWN_MAX];
	int r = names == NULL ? -ENOMEM : 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		const char *name = c->frames[frames[i]].function;

		if (name == NULL)
			name = "";
		else if (unwind_demangle(name, false, demangled, sizeof(demangled)))
			name = demangled;
		r = string_pool_intern(text, name, &names[i]);
	}
	if (r == 0)
		r = short_names_or_full(names, n, s->full_names, text, shown);
	free(names);
	return r;
}

static int print_frames(const struct stacks *s, const struct import_chunk *c,
			const uint32_t *frames, size_t n)
{
	const char **names = calloc(n + 1, sizeof(*names));
	struct string_pool text;
	int r = -ENOMEM;

	string_pool_init(&text, 0);
	if (names != NULL)
		r = make_names(s, c, frames, n, &text, names);
	for (size_t i = 0; i < n && r == 0; i++)
		print_frame(c, i, &c->frames[frames[i]], names[i]);
	string_pool_fini(&text);
	free(names);
	return r;
}

/*
 * Prints one thread. The name is that of the kernel: chunks change names so that they are
 * unique. With thread_id_format = pthread an id is a pointer, not a tid: then it is that of the
 * chunk.
 */
static int print_thread(const struct stacks *stacks, const struct import_chunk *c,
			const struct import_sample *s)
{
	const struct import_thread *t = &c->threads[s->thread];
	const size_t start = c->stack_starts[s->stack];
	const size_t end = c->stack_starts[s->stack + 1];
	const long long tid = strtoll(t->id, NULL, 10);
	char name[PROCESS_NAME_SIZE];

	if (tid <= INT32_MAX)
		process_name((int32_t)tid, name);
	printf("thread %s ", t->id);
	escape_write(tid <= INT32_MAX ? name : t->name, stdout);
	printf(" (%s)\n", profile_state_name(s->state));
	return print_frames(stacks, c, c->stack_frames + start, end - start);
}

/*
 * Sets last[thread] to 1 plus the index of the thread's last sample, or to 0 if the thread
 * has no stack at the end of the chunk: it has exited, or is no longer sampled. Returns the
 * number of threads with a stack.
 */
static size_t find_last(const struct import_chunk *c, uint32_t *last)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_samples; i++)
		last[c->samples[i].thread] = (uint32_t)i + 1;
	for (size_t t = 0; t < c->n_threads; t++) {
		const struct import_sample *s;

		if (last[t] == 0)
			continue;
		s = &c->samples[last[t] - 1];
		if (s->time_ns == c->samples[c->n_samples - 1].time_ns &&
		    c->stack_starts[s->stack] < c->stack_starts[s->stack + 1])
			n++;
		else
			last[t] = 0;
	}
	return n;
}

static size_t count_threads(int32_t pid)
{
	char text[PROCFS_STATUS_MAX];
	uint64_t n = 0;

	if (small_file_read(AT_FDCWD, procfs_path(pid, "status").text, text, sizeof(text)) == 0)
		(void)procfs_numbers(text, "\nThreads:", 10, &n, 1);
	return n;
}

/* Prints the stacks of a chunk if it has all threads, or if it is the last try. */
static int take_chunk(void *ctx, const struct import_chunk *c)
{
	struct stacks *s = ctx;
	const size_t n_threads = count_threads(s->recording.pid);
	uint32_t *last = calloc(c->n_threads + 1, sizeof(*last));
	size_t n;
	int r = 0;

	if (last == NULL)
		return -ENOMEM;
	s->n_chunks++;
	n = find_last(c, last);
	if (n > 0 && (n >= n_threads || s->n_chunks >= CHUNKS_MAX)) {
		for (size_t t = 0; t < c->n_threads && r == 0; t++)
			if (last[t] != 0)
				r = print_thread(s, c, &c->samples[last[t] - 1]);
		if (n < n_threads)
			printf("not seen: %zu of %zu threads (kernel threads, "
			       "threads that cannot be stopped, or waiting threads "
			       "if mode is cpu)\n",
			       n_threads - n, n_threads);
		s->is_printed = r == 0;
	}
	free(last);
	return r;
}

static int take_payload(void *ctx, const char *payload, size_t size)
{
	return inputs_read_bytes("a chunk of sentry-profd", payload, size, take_chunk, ctx);
}

static int read_chunks(struct stacks *s)
{
	struct recording *recording = &s->recording;
	const bool lacks_waiting = recording->lacks[0] != '\0';
	const unsigned int wait_s = lacks_waiting ? WAIT_CPU_S : WAIT_S;
	const uint64_t deadline_ns = clock_mono_ns() + wait_s * NS_PER_SEC;
	int r = 0;

	if (lacks_waiting)
		log_warning("process %d: %s", recording->pid, recording->lacks);
	while (r >= 0 && !s->is_printed && !recording->has_ended && ended_by == 0) {
		r = recording_wait(recording, deadline_ns, NULL);
		if (r == 0)
			r = -ETIMEDOUT;
		if (r > 0)
			r = recording_next(recording, take_payload, s);
		recording_log_note(recording);
		if (r == -EINTR)
			r = 0;
	}
	if (r == -ETIMEDOUT && lacks_waiting)
		log_error("process %d: none of its threads has run for %u s, and only running "
			  "threads can be shown: try again while it works",
			  recording->pid, wait_s);
	else if (r == -ETIMEDOUT)
		log_error("process %d: sentry-profd has sampled none of its "
			  "threads (sentry-profctl doctor %d looks for the "
			  "cause)",
			  recording->pid, recording->pid);
	else if (r < 0)
		log_error("process %d: the samples from sentry-profd cannot be read: %s",
			  recording->pid, strerror(-r));
	else if (!s->is_printed && recording->has_ended)
		log_error("process %d: sampling ended before it had any sample: %s", recording->pid,
			  recording_end_text(recording));
	return s->is_printed ? 0 : -ENODATA;
}

static int show(struct stacks *s)
{
	struct private_daemon daemon;
	struct control_client client = {.fd = -1};
	struct process before;
	const enum process_fault fault = process_look(s->pid, &before);
	int r = private_daemon_find(&daemon, s->socket, s->pid, &ended_by, &client);

	close_fd(&before.pidfd);
	/* A private daemon would wait until the other tracer detaches. */
	if (r == 0 && daemon.profd.pid != 0 && fault == PROCESS_TRACED)
		r = refusal_log_look(fault, s->pid, &before);
	if (r == 0)
		r = recording_open(&client, PROTOCOL_WATCH, s->pid, NULL, &s->recording);
	if (r == 0) {
		r = read_chunks(s);
		recording_close(&s->recording);
	}
	control_client_close(&client);
	private_daemon_end(&daemon);
	return r;
}

/* Executes sentry-profd-oracle in place of this process. Returns only if that fails. */
static int exec_oracle(const char *pid, const char *oracle)
{
	static const char name[] = "sentry-profd-oracle";
	char exe[PATH_MAX];
	int r = spawn_find(name, exe);

	if (r == 0) {
		(void)execl(exe, name, pid, oracle, (char *)NULL);
		r = -errno;
	}
	if (r == -ENOENT)
		log_error("--oracle needs %s, which is not installed: Debian's package of this "
			  "name has it",
			  name);
	else
		log_error("cannot start %s: %s", name, strerror(-r));
	return EXIT_FAILURE;
}

int stack_run(int argc, char **argv)
{
	enum { SOCKET = OPTION_LONG, ORACLE, NAMES };
	static const struct option options[] = {
		{"socket", required_argument, NULL, SOCKET},
		{"oracle", optional_argument, NULL, ORACLE},
		{"names", required_argument, NULL, NAMES},
		{0},
	};
	const struct sigaction action = {.sa_handler = on_signal};
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct stacks s = {0};
	const char *oracle = NULL;
	int option, r;

	while ((option = option_next(argv[0], argc, argv, ":", options, NULL)) != -1) {
		if (option == '?' ||
		    (option == NAMES && !option_full_names(argv[0], optarg, &s.full_names)))
			return EXIT_USAGE;
		if (option == SOCKET)
			s.socket = optarg;
		else if (option == ORACLE)
			oracle = optarg != NULL ? optarg : "libunwind";
	}
	if (optind + 1 != argc || !digits_pid(argv[optind], &s.pid)) {
		log_error("stack takes a pid (see --help)");
		return EXIT_USAGE;
	}
	if (oracle != NULL)
		return exec_oracle(argv[optind], oracle);
	/* Without SA_RESTART, so that a signal ends the wait for a chunk. */
	for (size_t i = 0; i < array_size(signals); i++)
		(void)sigaction(signals[i], &action, NULL);
	r = show(&s);
	if (ended_by != 0)
		return EXIT_SIGNAL + ended_by;
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
