/*
 * Prints the stacks of a thread at every instruction of one iteration of its loop. So it finds
 * states that last only a few instructions, which a random stop rarely meets.
 *
 * usage: steps PID FUNCTION
 *
 * The main thread of process PID has to call FUNCTION in a loop. The program single-steps it
 * from one start of FUNCTION to the next one. For each instruction it prints a line to stdout,
 * with the reason why the walk has ended (unwind_end_name()) and the frames:
 *
 *	END NAME:ADDRESS NAME:ADDRESS ...
 *
 * Of the functions that libgcc's unwinder (_Unwind_*) calls only one instruction in EVERY is
 * printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/oracle/live.h"
#include "lib/capture/ptrace/arch.h"
#include "tests/oracle/thread.h"

/* An iteration that throws an exception takes 50,000 to 80,000 steps. */
#define STEPS_MAX 400000

#define EVERY 8

#define UNWINDER "_Unwind_"

static struct unwind_stack stack;

static union {
	struct record_sample record;
	uint8_t bytes[THREAD_COPY_MAX];
} buffer;

/* Returns the name of the symbol that covers addr, or "". */
static const char *name_at(struct live *l, uint64_t addr, uint64_t *ret_offset)
{
	const char *name;

	return unwind_symbol_at(l->space, addr, &name, ret_offset) == 0 ? name : "";
}

static const char *name_of(struct live *l, const struct unwind_frame *f)
{
	uint64_t offset;

	return name_at(l, f->addr - !f->is_leaf, &offset);
}

static bool is_unwinder(const char *name)
{
	return strncmp(name, UNWINDER, strlen(UNWINDER)) == 0;
}

static void put_stack(struct live *l)
{
	(void)fputs(unwind_end_name(stack.end), stdout);
	for (size_t i = 0; i < stack.n; i++)
		(void)printf(" %s:%lx", name_of(l, &stack.frames[i]),
			     (unsigned long)stack.frames[i].addr);
	(void)putchar('\n');
}

/* Returns true if libgcc's unwinder is among the callers in the last stack. */
static bool is_called_by_unwinder(struct live *l)
{
	for (size_t i = 1; i < stack.n; i++)
		if (is_unwinder(name_of(l, &stack.frames[i])))
			return true;
	return false;
}

/* Unwinds the stopped thread and prints its stack. */
static int print_stack_at(struct live *l, const struct thread_stop *stop, bool *in_call)
{
	int r = thread_walk(l, stop, &buffer.record, &stack);

	if (r == 0) {
		put_stack(l);
		*in_call = is_called_by_unwinder(l);
	}
	return r;
}

static int step_through_loop(struct live *l, struct thread_stop *stop, const char *function)
{
	unsigned int starts = 0; /* how often the thread was at the start of function */
	bool in_call = false;
	int r = 0;

	for (unsigned long i = 0; r == 0 && i < STEPS_MAX; i++) {
		struct arch_regs regs;
		uint64_t dwarf[ARCH_REGS];
		uint64_t offset;
		const char *name;

		r = arch_get_regs((uint32_t)stop->tid, &regs);
		if (r < 0)
			break;
		arch_to_dwarf(&regs, dwarf);
		name = name_at(l, dwarf[ARCH_PC], &offset);
		if (offset == 0 && strcmp(name, function) == 0 && ++starts == 2)
			return 0;
		if (starts == 1 && (!in_call || is_unwinder(name) || i % EVERY == 0))
			r = print_stack_at(l, stop, &in_call);
		if (r == 0)
			r = thread_step(stop);
	}
	return r < 0 ? r : -ETIME;
}

int main(int argc, char **argv)
{
	struct thread_stop stop;
	struct live live;
	bool changed;
	int r;

	if (argc != 3) {
		(void)fputs("usage: steps PID FUNCTION\n", stderr);
		return 2;
	}
	r = live_init(&live, (int32_t)strtol(argv[1], NULL, 10));
	if (r == 0)
		r = thread_stop(live.pid, THREAD_STOP_NS, &stop);
	if (r == 0)
		r = live_read_maps(&live, &changed);
	if (r == 0)
		r = step_through_loop(&live, &stop, argv[2]);
	if (r == 0)
		thread_release(&stop);
	if (r < 0)
		(void)fprintf(stderr, "steps: %s\n", strerror(-r));
	live_fini(&live);
	return r < 0;
}
