/*
 * Stops the threads of a process at random moments. At each stop it compares the stack that
 * lib/unwind finds in a copy of the thread with the stacks that libunwind-ptrace and libdwfl
 * find in the stopped thread.
 *
 * usage: differ PID STOPS SEED STEPS
 *
 * The program ends after STOPS stops. After a random stop it single-steps the thread a random
 * number of times, up to STEPS, and compares after each step: so it meets every instruction of
 * a hot function. A thread that is blocked is also copied without a stop before it is stopped,
 * and both stacks are compared. SEED seeds the random numbers.
 *
 * The program prints to stdout a line of JSON for each stop at which an unwinder differs, or at
 * which the walk of lib/unwind does not reach the root, and at the end a line with the sums.
 * tests/oracle/differ.py reads them.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "daemon/oracle/live.h"
#include "daemon/oracle/oracle.h"
#include "lib/capture/ptrace/arch.h"
#include "tests/oracle/thread.h"

/* The longest pause between two random stops: running code has moved on by then. */
#define PAUSE_MAX_NS (2 * NS_PER_MS)

/* Failures in a row to stop a thread, after which the process counts as ended. */
#define FAILURES_MAX 1000

struct differ {
	struct live live;
	struct oracle *oracles[ORACLE_N];
	uint64_t random;
	unsigned long stops, by_step, compared_blocked;
	unsigned long ends[UNWIND_END_N];
	unsigned long agree[ORACLE_N];
	unsigned long guessed;
};

static struct unwind_stack ours, of_blocked;
static struct oracle_stack theirs[ORACLE_N];

static union {
	struct record_sample record;
	uint8_t bytes[THREAD_COPY_MAX];
} buffer, blocked;

/* SplitMix64 (Steele, Lea, Flood: Fast splittable generators, 2014). */
static uint64_t draw(struct differ *d, uint64_t below)
{
	uint64_t z = d->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % below;
}

/* Replaces each byte that is not ASCII by '?': JSON is UTF-8, and names of a target may not be. */
static void to_ascii(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text >= 0x80)
			*text = '?';
}

/* Returns [address, name, offset from the symbol's start, module, vaddr in the module, guessed]. */
static json_t *frame_json(struct differ *d, uint64_t addr, bool is_leaf, bool guessed)
{
	const uint64_t lookup = is_leaf ? addr : addr - 1;
	struct unwind_space *space = d->live.space;
	struct unwind_image image;
	char name[256] = "", module[256] = "";
	uint64_t offset = 0, at = 0;
	const char *found;

	if (unwind_symbol_at(space, lookup, &found, &offset) == 0)
		(void)snprintf(name, sizeof(name), "%s", found);
	if (unwind_image_at(space, lookup, &image) == 0) {
		(void)snprintf(module, sizeof(module), "%s", image.path);
		at = lookup - image.addr + image.vmaddr;
	} else if (!unwind_space_covers(space, lookup)) {
		(void)snprintf(module, sizeof(module), "unmapped");
	}
	to_ascii(name);
	to_ascii(module);
	return json_pack("[I,s,I,s,I,b]", (json_int_t)unwind_plain_addr(addr), name,
			 (json_int_t)offset, module, (json_int_t)at, guessed);
}

static json_t *ours_json(struct differ *d, const struct unwind_stack *s)
{
	json_t *frames = json_array();

	for (size_t i = 0; i < s->n; i++)
		(void)json_array_append_new(frames,
					    frame_json(d, s->frames[i].addr, s->frames[i].is_leaf,
						       s->frames[i].by_heuristic));
	return json_pack("{s:o,s:s}", "frames", frames, "end", unwind_end_name(s->end));
}

static json_t *theirs_json(struct differ *d, const struct oracle_stack *s, size_t first)
{
	json_t *frames = json_array();

	for (size_t i = 0; i < s->n; i++)
		(void)json_array_append_new(frames, frame_json(d, s->addrs[i], i == 0, false));
	return json_pack("{s:o,s:s,s:i}", "frames", frames, "end", s->end, "first", (int)first);
}

static void put(json_t *value)
{
	(void)json_dumpf(value, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	(void)putchar('\n');
	json_decref(value);
}

/* Returns the 16 bytes of code at pc in hexadecimal, for the reader of the report. */
static json_t *code_json(const struct differ *d, uint64_t pc)
{
	uint8_t code[16] = {0};
	char hex[2 * sizeof(code) + 1];
	struct iovec local = {code, sizeof(code)};
	struct iovec remote = {(void *)(uintptr_t)pc, sizeof(code)};

	(void)!process_vm_readv(d->live.pid, &local, 1, &remote, 1, 0);
	for (size_t i = 0; i < sizeof(code); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", code[i]);
	return json_string(hex);
}

static void compare_oracles(struct differ *d, int32_t tid)
{
	json_t *line = NULL;

	for (int i = 0; i < ORACLE_N; i++) {
		size_t first;

		oracle_walk(d->oracles[i], tid, &theirs[i]);
		if (oracle_agrees(&ours, &theirs[i], &first)) {
			d->agree[i]++;
			continue;
		}
		if (line == NULL)
			line = json_pack("{s:I,s:o,s:o}", "tid", (json_int_t)tid, "ours",
					 ours_json(d, &ours), "code",
					 code_json(d, unwind_plain_addr(ours.frames[0].addr)));
		(void)json_object_set_new(line, oracle_name((enum oracle_kind)i),
					  theirs_json(d, &theirs[i], first));
	}
	if (line != NULL)
		put(line);
}

static int read_maps(struct differ *d)
{
	bool changed = false;
	int r = live_read_maps(&d->live, &changed);

	for (int i = 0; i < ORACLE_N && changed; i++)
		oracle_forget(d->oracles[i]);
	return r;
}

/*
 * Copies and unwinds the thread without a stop. Returns false if the thread is not blocked. The
 * maps may be older than the copy.
 */
static bool copy_blocked(struct differ *d, int32_t tid, size_t *ret_size)
{
	uint64_t second = 0;

	for (int i = 0; (i == 0 || second != 0) && i < 2; i++) {
		if (thread_copy_blocked(&d->live, tid, second, &blocked.record, ret_size) < 0 ||
		    unwind_walk(d->live.space, &blocked.record, *ret_size, UNWIND_FRAMES_MAX,
				&of_blocked) < 0)
			return false;
		second = of_blocked.second;
	}
	return true;
}

static int compare(struct differ *d, const struct thread_stop *stop)
{
	int r;

	r = read_maps(d);
	if (r == 0)
		r = thread_walk(&d->live, stop, &buffer.record, &ours);
	if (r < 0)
		return r;
	compare_oracles(d, stop->tid);
	d->stops++;
	d->ends[ours.end]++;
	d->guessed += ours.has_heuristic;
	if (ours.end != UNWIND_END_ROOT)
		put(json_pack("{s:I,s:o}", "tid", (json_int_t)stop->tid, "early",
			      ours_json(d, &ours)));
	return 0;
}

/*
 * Returns true if the thread has run between the copy without a stop and the stop: it is blocked
 * in the same system call again, but other words are above its stack pointer.
 */
static bool has_run_since(void)
{
	const struct record_sample *a = &blocked.record, *b = &buffer.record;
	const uint64_t red_zone = a->regs[ARCH_SP] - a->stack_addr;
	const size_t size = min_u64(a->stack_size, b->stack_size);

	return a->stack_addr != b->stack_addr || red_zone >= size ||
	       memcmp(a->stack + red_zone, b->stack + red_zone, size - red_zone) != 0;
}

/*
 * Compares the stack that was copied without a stop, of size bytes, with that at the stop: they
 * have to be equal, unless the thread has run between the two.
 */
static void compare_blocked(struct differ *d, size_t size)
{
	bool same = true;

	if (blocked.record.regs[ARCH_SP] != buffer.record.regs[ARCH_SP] ||
	    blocked.record.regs[ARCH_PC] != buffer.record.regs[ARCH_PC] ||
	    unwind_walk(d->live.space, &blocked.record, size, UNWIND_FRAMES_MAX, &of_blocked) < 0)
		return;
	same = of_blocked.n == ours.n;
	for (size_t i = 0; i < ours.n && same; i++)
		same = of_blocked.frames[i].addr == ours.frames[i].addr;
	if (!same && has_run_since())
		return;
	d->compared_blocked++;
	if (!same)
		put(json_pack("{s:o,s:o}", "ours", ours_json(d, &ours), "blocked",
			      ours_json(d, &of_blocked)));
}

/* Returns false if the thread is in a system call, or at one: a step would last until its end. */
static bool can_step(const struct differ *d, const struct thread_stop *stop)
{
#if defined(__x86_64__)
	static const uint8_t syscall_code[] = {0x0f, 0x05};
#else
	static const uint8_t syscall_code[] = {0x01, 0x00, 0x00, 0xd4}; /* svc #0 */
#endif
	struct arch_regs regs;
	uint64_t dwarf[ARCH_REGS];
	uint8_t code[sizeof(syscall_code)] = {0};
	struct iovec local = {code, sizeof(code)};
	struct iovec remote = {.iov_len = sizeof(code)};
	long nr, result;

	if (stop->status == TRACEE_GROUP_STOP || arch_get_regs((uint32_t)stop->tid, &regs) < 0 ||
	    arch_interrupted_call(&regs, &nr, &result))
		return false;
	arch_to_dwarf(&regs, dwarf);
	remote.iov_base = (void *)(uintptr_t)dwarf[ARCH_PC];
	return process_vm_readv(d->live.pid, &local, 1, &remote, 1, 0) == (ssize_t)sizeof(code) &&
	       memcmp(code, syscall_code, sizeof(code)) != 0;
}

/* Returns a random thread of the process; 0: the process has none. */
static int32_t random_thread(struct differ *d)
{
	int32_t tid = 0, chosen = 0;
	uint64_t n = 0;

	while ((tid = live_next_thread(&d->live, tid)) != 0)
		if (draw(d, ++n) == 0)
			chosen = tid;
	return chosen;
}

/* Stops a random thread, compares its stacks, and single-steps it from there. */
static int examine_thread(struct differ *d, unsigned long stops, uint64_t steps)
{
	int32_t tid = random_thread(d);
	struct thread_stop stop;
	bool was_blocked;
	size_t size;
	int r;

	if (tid == 0)
		return -ESRCH;
	/* The maps tell where the stack to copy ends. */
	r = read_maps(d);
	if (r < 0)
		return r;
	was_blocked = copy_blocked(d, tid, &size);
	r = thread_stop(tid, THREAD_STOP_NS, &stop);
	if (r < 0)
		return r;
	r = compare(d, &stop);
	if (r == 0 && was_blocked)
		compare_blocked(d, size);
	steps = draw(d, 1 + steps);
	while (r == 0 && steps-- > 0 && d->stops < stops && can_step(d, &stop)) {
		r = thread_step(&stop);
		if (r == 0)
			r = compare(d, &stop);
		d->by_step++;
	}
	if (r != -ESRCH)
		thread_release(&stop);
	return r;
}

static void put_sums(const struct differ *d)
{
	json_t *ends = json_object();

	for (int i = 0; i < UNWIND_END_N; i++)
		if (d->ends[i] > 0)
			(void)json_object_set_new(ends, unwind_end_name((enum unwind_end)i),
						  json_integer((json_int_t)d->ends[i]));
	put(json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:o}", "stops", (json_int_t)d->stops, "steps",
		      (json_int_t)d->by_step, "blocked_compared", (json_int_t)d->compared_blocked,
		      "guessed", (json_int_t)d->guessed, "libunwind_agrees",
		      (json_int_t)d->agree[ORACLE_LIBUNWIND], "libdwfl_agrees",
		      (json_int_t)d->agree[ORACLE_LIBDWFL], "ends", ends));
}

int main(int argc, char **argv)
{
	struct differ d = {0};
	unsigned long stops;
	unsigned int failures = 0;
	uint64_t steps;
	bool changed;
	int r = 0;

	if (argc != 5) {
		(void)fputs("usage: differ PID STOPS SEED STEPS\n", stderr);
		return 2;
	}
	stops = strtoul(argv[2], NULL, 10);
	d.random = strtoull(argv[3], NULL, 10);
	steps = strtoull(argv[4], NULL, 10);
	if (live_init(&d.live, (int32_t)strtol(argv[1], NULL, 10)) < 0 ||
	    live_read_maps(&d.live, &changed) < 0 ||
	    oracle_new(ORACLE_LIBUNWIND, d.live.pid, &d.oracles[0]) < 0 ||
	    oracle_new(ORACLE_LIBDWFL, d.live.pid, &d.oracles[1]) < 0) {
		(void)fprintf(stderr, "differ: no process %s\n", argv[1]);
		return 1;
	}
	while (d.stops < stops && failures < FAILURES_MAX) {
		const struct timespec pause = {.tv_nsec = (long)draw(&d, PAUSE_MAX_NS)};

		(void)nanosleep(&pause, NULL);
		r = examine_thread(&d, stops, steps);
		failures = r < 0 ? failures + 1 : 0;
	}
	put_sums(&d);
	if (d.stops < stops)
		(void)fprintf(stderr, "differ: process %s: %s\n", argv[1], strerror(-r));
	for (int i = 0; i < ORACLE_N; i++)
		oracle_free(d.oracles[i]);
	live_fini(&d.live);
	return 0;
}
