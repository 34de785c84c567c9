/*
 * Compares walks of real programs, frame by frame, with the stacks that the programs print, with
 * libunwind-ptrace at the same stop, and with walks that know only sp and pc.
 */
#include "lib/unwind/walk/rule_step.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "lib/base/buf.h"
#include "lib/unwind/cpu.h"
#include "tests/unit/suite.h"
#include "tests/unit/unwind/record.h"

#define FRAMES	     256
#define RANDOM_STOPS 300
/* Steps between two stops: a prime, so that stops are anywhere in a loop. */
#define STEPS_MAX 397
#define THREADS	  5

#define SP_AND_PC (UINT64_C(1) << CPU_SP | UINT64_C(1) << CPU_PC)

static const char *const programs[] = {
	"unw_o0", "unw_o2", "unw_o3", "unw_fp", "unw_static", "unw_nopie",
};
#define N_PROGRAMS ((int)array_size(programs))

static const struct {
	const char *name;
	long nr;
} blocking[] = {
	{"nanosleep", SYS_clock_nanosleep},
	{"read", SYS_read},
	{"poll", RECORD_POLL},
	{"futex", SYS_futex},
	{"signal", SYS_clock_nanosleep},
	{"raise", SYS_clock_nanosleep},
	{"qsort", SYS_read},
	{"noreturn", SYS_read},
};
#define N_BLOCKING ((int)array_size(blocking))

static struct unwind_stack ours;
static struct unwind_stack other;

static void describe(struct target *t, struct buf *b, uint64_t addr, bool leaf)
{
	const char *name = "?";
	uint64_t offset = 0;

	if (unwind_symbol_at(t->space, leaf ? addr : addr - 1, &name, &offset))
		name = "?";
	OK(buf_printf(b, "%#" PRIx64 " %s+%#" PRIx64 "\n", addr, name, offset));
}

static bool is_same(const struct unwind_stack *a, const uint64_t *addrs, size_t n)
{
	bool same = a->n == n;

	for (size_t i = 0; i < n && same; i++)
		same = a->frames[i].addr == addrs[i];
	return same;
}

/* If the stacks differ, fails and prints both. */
static void assert_same(struct target *t, const struct unwind_stack *a, const uint64_t *addrs,
			size_t n, const char *what)
{
	struct buf b;

	if (is_same(a, addrs, n))
		return;
	buf_init(&b, 1u << 20);
	OK(buf_printf(&b, "%s\nours, end %s:\n", what, unwind_end_name(a->end)));
	for (size_t i = 0; i < a->n; i++)
		describe(t, &b, a->frames[i].addr, i == 0);
	OK(buf_add_string(&b, "theirs:\n"));
	for (size_t i = 0; i < n; i++)
		describe(t, &b, addrs[i], i == 0);
	ck_abort_msg("%s", buf_string(&b));
}

static void walk(struct target *t, const struct record_sample *s, size_t size,
		 struct unwind_stack *ret)
{
	OK(unwind_walk(t->space, s, size, FRAMES, ret));
}

/*
 * aarch64: where the dynamic linker binds a function, the oracles take the stack pointer of its
 * caller to be too low (lib/unwind/dwarf/cfi.c), and find that caller again.
 */
static bool finds_caller_again(const struct oracle_stack *theirs)
{
	for (size_t i = 0; CPU_LINK_REGISTER && i + 1 < theirs->n; i++)
		if (theirs->addrs[i] == theirs->addrs[i + 1])
			return true;
	return false;
}

/*
 * Compares one stopped thread: our walk, those of the oracles, and ours from sp and pc. If the
 * oracles differ, one of them is right: libunwind finds no CFI in files without PT_GNU_EH_FRAME
 * (static executables) and in the vDSO, which is no file; libdwfl loses rbx, which the dynamic
 * linker's lazy binding needs.
 */
static void compare_stop(struct target *t, pid_t tid, bool sp_and_pc, const char *what)
{
	bool is_static = strncmp(what, "unw_static", 10) == 0;
	static struct oracle_stack theirs;
	uint64_t bare[FRAMES];
	struct record_sample *s;
	size_t size;

	s = record_thread(t, tid, &size);
	walk(t, s, size, &ours);
	target_oracle(t, ORACLE_LIBUNWIND, tid, &theirs);
	if (!is_same(&ours, theirs.addrs, theirs.n)) {
		target_oracle(t, ORACLE_LIBDWFL, tid, &theirs);
		/* Both oracles skip the caller of a stub without CFI. */
		if (!ours.frames[1].by_heuristic && !finds_caller_again(&theirs))
			assert_same(t, &ours, theirs.addrs, theirs.n, what);
	}
	ck_assert_msg(ours.end == UNWIND_END_ROOT, "%s: %s", what, unwind_end_name(ours.end));
	/* Only IFUNC stubs have no CFI; on aarch64 also the PLT. */
	ck_assert(!ours.has_heuristic || is_static || CPU_LINK_REGISTER);
	if (sp_and_pc) {
		s->regs_known = SP_AND_PC;
		for (size_t i = 0; i < SAMPLE_REGS_MAX; i++) {
			if (!(SP_AND_PC >> i & 1))
				s->regs[i] = UINT64_C(0xdeaddeaddeaddead);
		}
		walk(t, s, size, &other);
		for (size_t i = 0; i < other.n; i++)
			bare[i] = other.frames[i].addr;
		assert_same(t, &ours, bare, other.n, what);
		ck_assert_int_eq(other.end, UNWIND_END_ROOT);
		ck_assert_uint_eq(other.stack_top, ours.stack_top);
		/* On x86-64 these two find their frames by the frame pointer. */
		if (!CPU_LINK_REGISTER && (strcmp(what, "unw_o0 nanosleep") == 0 ||
					   strcmp(what, "unw_fp nanosleep") == 0))
			ck_assert(other.has_heuristic);
	}
	free(s);
}

static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (text = strstr(text, word); text; text = strstr(text + 1, word)) {
		if (text[-1] == ' ' && (text[n] == ' ' || text[n] == '\n'))
			return true;
	}
	return false;
}

/* The names in our stack that the target has announced. */
static void own_names(struct target *t, struct buf *b)
{
	bool first = true;

	for (size_t i = 0; i < ours.n; i++) {
		uint64_t addr = ours.frames[i].addr - !ours.frames[i].is_leaf;
		const char *name = "?";
		uint64_t offset;

		if (unwind_symbol_at(t->space, addr, &name, &offset) || !has_word(t->text, name))
			continue;
		if (!first)
			OK(buf_add_string(b, " "));
		first = false;
		OK(buf_add_string(b, name));
	}
}

static void wait_for(struct target *t, pid_t tid, long nr)
{
	while (target_wait_blocked(t, tid) != nr)
		;
}

TESTS(stacks_of_blocked_programs_are_those_that_they_print, N_PROGRAMS *N_BLOCKING)
{
	const char *program = programs[_i / N_BLOCKING];
	const char *mode = blocking[_i % N_BLOCKING].name;
	const char *args[] = {mode, NULL};
	char expect[512];
	char what[64];
	struct target t;
	struct buf b;

	target_start(&t, program, args);
	wait_for(&t, t.pid, blocking[_i % N_BLOCKING].nr);
	(void)snprintf(what, sizeof(what), "%s %s", program, mode);
	thread_seize(t.pid);
	thread_interrupt(t.pid);
	compare_stop(&t, t.pid, true, what);
	buf_init(&b, 4096);
	own_names(&t, &b);
	(void)snprintf(expect, sizeof(expect), "expect %s\nready\n", buf_string(&b));
	ck_assert_str_eq(expect, t.text);
	buf_fini(&b);
	thread_detach(t.pid);
	target_stop(&t);
}

TESTS(stacks_of_all_threads_are_those_of_libunwind, N_PROGRAMS)
{
	const char *args[] = {"threads", NULL};
	pid_t tids[THREADS + 1];
	struct target t;
	size_t n;

	target_start(&t, programs[_i], args);
	n = target_threads(&t, tids, THREADS + 1);
	ck_assert_uint_eq(n, THREADS);
	for (size_t i = 0; i < n; i++) {
		(void)target_wait_blocked(&t, tids[i]);
		thread_seize(tids[i]);
		thread_interrupt(tids[i]);
		compare_stop(&t, tids[i], true, programs[_i]);
		thread_detach(tids[i]);
	}
	target_stop(&t);
}

/*
 * Stops after a number of instructions: in prologues, epilogues, the PLT, the vDSO. The stops are
 * the same in each run.
 */
TESTS(stacks_at_random_stops_are_those_of_libunwind, N_PROGRAMS)
{
	const char *args[] = {"work", NULL};
	uint32_t random = 1;
	struct target t;

	target_start(&t, programs[_i], args);
	thread_seize(t.pid);
	thread_interrupt(t.pid);
	for (int i = 0; i < RANDOM_STOPS; i++) {
		random = random * 1664525 + 1013904223;
		thread_step(t.pid, 1 + (random >> 8) % STEPS_MAX);
		compare_stop(&t, t.pid, false, programs[_i]);
	}
	target_stop(&t);
}
