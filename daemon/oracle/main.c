/*
 * sentry-profd-oracle: prints the stack of each thread of a process, as this project unwinds
 * it, and compares it with what other unwinders (oracle.h) find at the same stop. Executed by
 * `sentry-profctl stack --oracle`.
 *
 * usage: sentry-profd-oracle PID [libunwind|dwfl|all] | --version
 *
 * Exit status: 0; 3 if a stack differs; 1 after a line on stderr; 2 for wrong usage.
 *
 * The process attaches to all threads first, then drops its rights to those of the target:
 * the target's user and, if that is the caller's own (root), the target's capabilities. Only
 * then it opens the first file of the target. So a file that exploits one of the three parsers
 * gains no rights. The price: root cannot examine a target that its own user could not trace
 * (one with capabilities, or not dumpable).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/common/privileges.h"
#include "daemon/common/version.h"
#include "daemon/msg/msg.h"
#include "daemon/oracle/live.h"
#include "daemon/oracle/oracle.h"
#include "daemon/oracle/thread_copy.h"
#include "daemon/process/process.h"
#include "daemon/process/refusal.h"
#include "lib/base/digits.h"
#include "lib/base/escape.h"

enum {
	EXIT_USAGE = 2,
	EXIT_DIFFERENT = 3,
};

/* Longer names are shown mangled. */
#define NAME_SHOWN_MAX 1024

/*
 * Time limit for a stop after one thread has exceeded THREAD_STOP_NS, so that many threads
 * that wait in the kernel do not add up. They are released when they stop.
 */
#define LATE_STOP_NS (100 * NS_PER_MS)

struct thread {
	struct thread_stop stop;
	int error; /* 0: attached; -ETIMEDOUT: stops later; else -errno */
};

struct comparer {
	int32_t pid;
	struct thread *threads;
	size_t n_threads;
	bool has_late; /* a thread has not stopped within THREAD_STOP_NS */
	struct live live;
	struct oracle *oracles[ORACLE_N]; /* NULL: not requested */
	size_t n_seen, n_differ;
	int error; /* the error of the last thread that could not be examined */
};

static struct unwind_stack ours;
static struct oracle_stack theirs[ORACLE_N];

static union {
	struct record_sample record;
	uint8_t bytes[THREAD_COPY_MAX];
} buffer;

static void print_thread(int32_t tid)
{
	char name[PROCESS_NAME_SIZE];

	process_name(tid, name);
	printf("thread %d ", tid);
	escape_write(name, stdout);
	(void)putchar('\n');
}

/* Prints "name+0x12 (module)", or without a name "(module+0x12)": the address in the file. */
static void print_symbol(struct live *l, uint64_t addr, uint64_t lookup)
{
	struct unwind_image image;
	char demangled[NAME_SHOWN_MAX];
	const char *name, *base;
	uint64_t offset;
	bool named;

	named = unwind_symbol_at(l->space, lookup, &name, &offset) == 0;
	if (named) {
		if (unwind_demangle(name, false, demangled, sizeof(demangled)))
			name = demangled;
		(void)putchar(' ');
		escape_write(name, stdout);
		printf("+0x%" PRIx64, offset + (addr - lookup));
	}
	if (unwind_image_at(l->space, lookup, &image) < 0)
		return;
	base = strrchr(image.path, '/');
	printf(" (");
	escape_write(base != NULL ? base + 1 : image.path, stdout);
	if (!named)
		printf("+0x%" PRIx64, addr - image.addr + image.vmaddr);
	(void)putchar(')');
}

static void print_frame(struct live *l, const char *mark, size_t n, const struct unwind_frame *f)
{
	printf("%s#%-3zu 0x%016" PRIx64, mark, n, unwind_plain_addr(f->addr));
	print_symbol(l, f->addr, f->is_leaf ? f->addr : f->addr - 1);
	printf(f->by_heuristic ? " guessed\n" : "\n");
}

/*
 * Prints the oracle's stack from frame first on, which is the first that differs. SIZE_MAX: the
 * stacks are equal.
 */
static void print_theirs(struct live *l, enum oracle_kind kind, size_t first)
{
	const struct oracle_stack *s = &theirs[kind];

	if (first == SIZE_MAX) {
		printf("  %s: the same\n", oracle_name(kind));
		return;
	}
	printf("> %s differs from #%zu on:\n", oracle_name(kind), first);
	for (size_t i = first; i < s->n; i++) {
		const struct unwind_frame f = {s->addrs[i], i == 0, 0};

		print_frame(l, "  > ", i, &f);
	}
	printf("  > ended: %s\n", s->end);
}

static void print_ours(struct live *l, size_t first_differing)
{
	for (size_t i = 0; i < ours.n; i++)
		print_frame(l, i == first_differing ? "> " : "  ", i, &ours.frames[i]);
	printf("%sended: %s\n", first_differing == ours.n ? "> " : "  ", unwind_end_name(ours.end));
}

static void release_late(struct comparer *c)
{
	for (size_t i = 0; i < c->n_threads; i++)
		if (c->threads[i].error == -ETIMEDOUT && thread_release_late(&c->threads[i].stop))
			c->threads[i].error = -ESRCH;
}

/* Prints nothing for a thread that has exited; for an exited leader the error is -EPERM. */
static void print_missed(int32_t tid, int error)
{
	if (error == -ESRCH || error == -EPERM)
		return;
	print_thread(tid);
	printf("  not seen: %s\n", error == -ETIMEDOUT ? "it waits in the kernel and does not stop"
				   : error == -EOPNOTSUPP
					   ? "it is a kernel thread and cannot be stopped"
					   : strerror(-error));
}

/* Unwinds a stopped thread by the oracles, and prints the comparison with ours. */
static void compare(struct comparer *c, int32_t tid)
{
	size_t firsts[ORACLE_N], first = SIZE_MAX;

	for (int i = 0; i < ORACLE_N; i++) {
		firsts[i] = SIZE_MAX;
		if (c->oracles[i] == NULL)
			continue;
		oracle_walk(c->oracles[i], tid, &theirs[i]);
		if (!oracle_agrees(&ours, &theirs[i], &firsts[i]))
			first = min_size(first, firsts[i]);
	}
	print_thread(tid);
	print_ours(&c->live, first);
	for (int i = 0; i < ORACLE_N; i++)
		if (c->oracles[i] != NULL)
			print_theirs(&c->live, (enum oracle_kind)i, firsts[i]);
	c->n_differ += first != SIZE_MAX;
	c->n_seen++;
}

/* Stops a thread, unwinds it in all ways at that stop, and resumes it. */
static int examine(struct comparer *c, struct thread_stop *stop)
{
	bool changed = false;
	int r = thread_stop_attached(stop->tid, c->has_late ? LATE_STOP_NS : THREAD_STOP_NS, stop);

	if (r < 0)
		return r;
	r = live_read_maps(&c->live, &changed);
	for (int i = 0; i < ORACLE_N && changed; i++)
		oracle_forget(c->oracles[i]);
	if (r == 0)
		r = thread_walk(&c->live, stop, &buffer.record, &ours);
	if (r == 0)
		compare(c, stop->tid);
	thread_release(stop);
	return r;
}

static void examine_all(struct comparer *c)
{
	for (size_t i = 0; i < c->n_threads; i++) {
		struct thread *t = &c->threads[i];

		release_late(c);
		if (t->error == 0)
			t->error = examine(c, &t->stop);
		if (t->error == 0)
			continue;
		c->error = t->error;
		c->has_late = c->has_late || t->error == -ETIMEDOUT;
		print_missed(t->stop.tid, t->error);
	}
	release_late(c);
}

/* Attaches to all threads. A new thread usually gets a larger tid, so the loop finds it. */
static int attach_to_all(struct comparer *c)
{
	bool any = false;

	for (int32_t tid = 0; (tid = live_next_thread(&c->live, tid)) != 0;) {
		struct thread *more = reallocarray(c->threads, c->n_threads + 1, sizeof(*more));

		if (more == NULL)
			return -ENOMEM;
		c->threads = more;
		more[c->n_threads++] =
			(struct thread){.stop.tid = tid, .error = thread_attach(tid)};
		c->error = more[c->n_threads - 1].error;
		any = any || c->error == 0;
	}
	return any ? 0 : c->error != 0 ? c->error : -ESRCH;
}

/*
 * Drops rights to those of the target. If the user is the same, usually root, the capabilities
 * are those of the target: root of a container has fewer.
 */
static int drop_rights(int32_t pid)
{
	capability_set keep = 0;
	uint32_t uid, gid;
	struct ids ids;
	int r = process_ids(pid, &ids);

	if (r < 0)
		return r;
	uid = ids.uid[IDS_EFFECTIVE];
	gid = ids.gid[IDS_EFFECTIVE];
	if (uid == geteuid()) {
		r = privileges_permitted_of(pid, &keep);
		uid = gid = PRIVILEGES_KEEP_ID;
	}
	return r < 0 ? r : privileges_drop(uid, gid, keep, false);
}

/* Examines all threads. Called after drop_rights(). */
static int compare_all(struct comparer *c, const bool wanted[ORACLE_N])
{
	bool changed;
	int r = live_read_maps(&c->live, &changed);

	for (int i = 0; i < ORACLE_N && r == 0; i++)
		if (wanted[i])
			r = oracle_new((enum oracle_kind)i, c->pid, &c->oracles[i]);
	if (r == 0)
		examine_all(c);
	for (int i = 0; i < ORACLE_N; i++)
		oracle_free(c->oracles[i]);
	return r == 0 && c->n_seen == 0 ? c->error : r;
}

static int run(struct comparer *c, const bool wanted[ORACLE_N])
{
	bool is_attached;
	struct ids ids = {0};
	int r = live_init(&c->live, c->pid);

	if (r == 0)
		r = process_ids(c->pid, &ids);
	if (r == 0)
		r = attach_to_all(c);
	is_attached = r == 0;
	if (r == 0)
		r = drop_rights(c->pid);
	if (r == 0)
		r = compare_all(c, wanted);
	if (is_attached && (r == -EACCES || r == -EPERM))
		log_error("process %d is not compared: it is not dumpable, or has capabilities, so "
			  "its own user, as whom its files are read, may not read it",
			  c->pid);
	else if (r < 0)
		refusal_log_attach(c->pid, ids.uid[IDS_EFFECTIVE], r == -ENOENT ? ESRCH : -r);
	live_fini(&c->live);
	free(c->threads);
	return r;
}

static bool choose(const char *name, bool ret[ORACLE_N])
{
	const bool all = strcmp(name, "all") == 0;

	ret[ORACLE_LIBUNWIND] = all || strcmp(name, "libunwind") == 0;
	ret[ORACLE_LIBDWFL] = all || strcmp(name, "dwfl") == 0;
	return ret[ORACLE_LIBUNWIND] || ret[ORACLE_LIBDWFL];
}

int main(int argc, char **argv)
{
	const char *name = argc > 2 ? argv[2] : "libunwind";
	struct comparer c = {0};
	bool wanted[ORACLE_N];

	log_init("sentry-profd-oracle", false);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("sentry-profd-oracle %s\n", version_text);
		return EXIT_SUCCESS;
	}
	if (argc < 2 || argc > 3) {
		log_error("usage: sentry-profd-oracle PID "
			  "[libunwind|dwfl|all] | --version");
		return EXIT_USAGE;
	}
	if (!digits_pid(argv[1], &c.pid)) {
		log_error("not a pid: '%s'", argv[1]);
		return EXIT_USAGE;
	}
	if (!choose(name, wanted)) {
		log_error("unknown unwinder '%s': the second argument is libunwind, dwfl or "
			  "all",
			  name);
		return EXIT_USAGE;
	}
	/* Line buffered: stacks are shown while the program waits for a thread to stop. */
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (run(&c, wanted) < 0)
		return EXIT_FAILURE;
	return c.n_differ > 0 ? EXIT_DIFFERENT : EXIT_SUCCESS;
}
