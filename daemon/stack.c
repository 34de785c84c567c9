#include "daemon/stack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/oracle/live.h"
#include "daemon/process.h"
#include "daemon/oracle/thread_copy.h"

/* A demangled name; a longer one is shown as it is. */
#define NAME_SHOWN_MAX 1024

/* What one thread was found to do. */
struct copy {
	int32_t tid;
	bool stopped; /* for it: all registers are known */
	struct record_sample *record;
	size_t size;
};

/*
 * Threads that wait in the kernel and will stop later are let go of then; who
 * has so many of them is not looked at further. All together are waited for
 * once as long as one, and each after that for a moment.
 */
#define LATE_MAX     64
#define LATE_STOP_NS (100 * NS_PER_MS)

struct looker {
	struct live live;
	int error; /* of the last thread that could not be looked at */
	struct thread_stop late[LATE_MAX];
	size_t n_late;
	size_t threads; /* whose stacks were printed */
};

static struct unwind_stack ours;

/* Text that a target chose; a terminal obeys U+0080 to U+009F, too. */
static void print_escaped(const char *text)
{
	for (const char *p = text; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;
		bool c1 = c == 0xc2 && (unsigned char)p[1] < 0xa0 && p[1];

		if (c1)
			c = (unsigned char)*++p;
		if (c < 0x20 || c == 0x7f || c1)
			printf("\\x%02x", c);
		else
			(void)putchar(c);
	}
}

static void print_thread(int32_t tid)
{
	char name[PROCESS_NAME_SIZE];

	process_name(tid, name);
	printf("thread %d ", tid);
	print_escaped(name);
	(void)putchar('\n');
}

/* "name+0x12 (module)", or "(module+0x12)" by the addresses of its file. */
static void print_place(struct live *l, uint64_t addr, uint64_t lookup)
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
		print_escaped(name);
		printf("+0x%" PRIx64, offset + (addr - lookup));
	}
	if (unwind_image_at(l->space, lookup, &image) < 0)
		return;
	base = strrchr(image.path, '/');
	printf(" (");
	print_escaped(base != NULL ? base + 1 : image.path);
	if (!named)
		printf("+0x%" PRIx64, addr - image.addr + image.vmaddr);
	(void)putchar(')');
}

static void print_frame(struct live *l, const char *mark, size_t n,
			const struct unwind_frame *f)
{
	printf("%s#%-3zu 0x%016" PRIx64, mark, n, f->addr);
	print_place(l, f->addr, f->is_leaf ? f->addr : f->addr - 1);
	printf(f->by_heuristic ? " guessed\n" : "\n");
}

static void print_ours(struct live *l)
{
	for (size_t i = 0; i < ours.n; i++)
		print_frame(l, "  ", i, &ours.frames[i]);
	printf("  ended: %s\n", unwind_end_name(ours.end));
}

static int walk(struct looker *k, const struct record_sample *record,
		size_t size)
{
	return unwind_walk(k->live.space, record, size, UNWIND_FRAMES_MAX,
			   &ours);
}

/* The largest copy; it is kept smaller. */
static union {
	struct record_sample record;
	uint8_t bytes[THREAD_COPY_MAX];
} buffer;

static int keep(struct copy *c, size_t size)
{
	struct record_sample *record = malloc(size);

	if (record == NULL)
		return -ENOMEM;
	memcpy(record, &buffer, size);
	free(c->record);
	c->record = record;
	c->size = size;
	return 0;
}

static void release_late(struct looker *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->n_late; i++)
		if (!thread_release_late(&k->late[i]))
			k->late[n++] = k->late[i];
	k->n_late = n;
}

static int stop_thread(struct looker *k, int32_t tid, struct thread_stop *ret)
{
	int r;

	release_late(k);
	if (k->n_late == LATE_MAX)
		return -ETIMEDOUT;
	r = thread_stop(tid, k->n_late == 0 ? THREAD_STOP_NS : LATE_STOP_NS,
			ret);
	if (r == -ETIMEDOUT)
		k->late[k->n_late++] = *ret;
	return r;
}

/* Not of who is gone: also of a leader, who then may not be traced either. */
static void print_missed(const struct looker *k, int32_t tid)
{
	if (k->error == -ESRCH || k->error == -EPERM)
		return;
	print_thread(tid);
	printf("  not seen: %s\n",
	       k->error == -ETIMEDOUT ? "it waits in the kernel, and does not "
					"stop"
	       : k->error == -EOPNOTSUPP
		       ? "it is the kernel's, and not to be stopped"
		       : strerror(-k->error));
}

static int take_stopped(struct looker *k, struct copy *c, uint64_t second)
{
	struct thread_stop stop;
	size_t size;
	int r;

	r = stop_thread(k, c->tid, &stop);
	if (r < 0)
		return r;
	r = thread_copy_stopped(&k->live, &stop, second, &buffer.record, &size);
	thread_release(&stop);
	if (r == 0)
		r = keep(c, size);
	c->stopped = r == 0;
	return r;
}

static int take(struct looker *k, struct copy *c)
{
	size_t size;

	if (thread_copy_blocked(&k->live, c->tid, 0, &buffer.record, &size) ==
	    0)
		return keep(c, size);
	return take_stopped(k, c, 0);
}

/* The wait alone told less than all registers may. */
static bool is_in_doubt(const struct copy *c)
{
	return !c->stopped &&
	       (ours.frame_pointer ||
		(ours.end != UNWIND_END_ROOT && ours.end != UNWIND_END_CAPPED));
}

static void print_copy(struct looker *k, struct copy *c)
{
	int r = walk(k, c->record, c->size);

	/* Its registers may lead to another stack. */
	for (int i = 0; i < 2; i++)
		if (r == 0 && (is_in_doubt(c) || ours.second != 0) &&
		    take_stopped(k, c, ours.second) == 0)
			r = walk(k, c->record, c->size);
	if (r < 0) {
		k->error = r;
		return;
	}
	print_thread(c->tid);
	print_ours(&k->live);
	k->threads++;
}

/*
 * First all are copied, so that their stacks are of one moment as nearly as
 * can be, then unwound.
 */
static int look(struct looker *k)
{
	struct copy *copies = NULL;
	bool changed;
	size_t n = 0;
	int r = 0;

	for (int32_t tid = 0;
	     r == 0 && (tid = live_next_thread(&k->live, tid)) != 0;) {
		struct copy *more =
			reallocarray(copies, n + 1, sizeof(*copies));

		if (more == NULL) {
			r = -ENOMEM;
			break;
		}
		copies = more;
		copies[n] = (struct copy){.tid = tid};
		k->error = take(k, &copies[n]);
		if (k->error == 0)
			n++;
		else
			print_missed(k, tid);
	}
	/* Libraries may have come; of those that went nothing is left. */
	if (r == 0 && n > 0)
		(void)!live_read_maps(&k->live, &changed);
	for (size_t i = 0; i < n; i++) {
		if (r == 0)
			print_copy(k, &copies[i]);
		free(copies[i].record);
	}
	free(copies);
	return r;
}

int stack_print(int32_t pid)
{
	struct looker k = {0};
	bool changed;
	int r;

	r = live_init(&k.live, pid);
	if (r == -ENOENT)
		r = -ESRCH;
	if (r == 0)
		r = live_read_maps(&k.live, &changed);
	if (r == 0)
		r = look(&k);
	release_late(&k);
	if (r == 0 && k.threads == 0)
		r = k.error != 0 ? k.error : -ESRCH;
	live_fini(&k.live);
	return r;
}
