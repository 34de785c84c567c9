#include "lib/capture/thread_pointer.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "lib/capture/proc/memory.h"
#include "lib/capture/ptrace/arch.h"
#include "lib/capture/slow_memory.h"
#include "lib/capture/state.h"

/*
 * The most bytes between the start of the thread's own data and the head of its list of robust
 * locks, which is in these data: 736 with glibc on x86_64 (struct pthread in nptl/descr.h).
 */
#define BEFORE_HEAD_MAX 2048

/*
 * Returns the address of the head of the thread's list of robust locks, or 0 if the thread has no
 * list or the kernel denies access.
 */
static uint64_t robust_head(uint32_t tid)
{
	uint64_t head = 0;
	size_t size = 0;

	/* get_robust_list(2); libc has no function for it. */
	if (syscall(SYS_get_robust_list, (int)tid, &head, &size) < 0)
		return 0;
	return head;
}

/*
 * Searches for pthread_self() between from and the head of the list. glibc's list is in the
 * thread's own data, and pthread_self() is their start: arch_is_own_data(). musl makes a list only
 * when it needs one.
 */
static uint64_t search_from(const struct thread *th, uint64_t from, uint64_t head)
{
	uint64_t words[BEFORE_HEAD_MAX / sizeof(uint64_t)];
	size_t n = (size_t)(head - from) / sizeof(words[0]);

	if (memory_read(th->target->pagemap_fd, NULL, (int32_t)th->tid, from, words,
			n * sizeof(words[0]), 0) != (ssize_t)(n * sizeof(words[0])))
		return 0;
	/* The match nearest to the head counts. */
	for (size_t i = n; i-- > 0;)
		if (arch_is_own_data(words + i, n - i, from + i * sizeof(words[0])))
			return from + i * sizeof(words[0]);
	return 0;
}

static uint64_t find_pointer(const struct thread *th)
{
	const uint64_t head = robust_head(th->tid) & ~UINT64_C(7);
	uint64_t page, found;

	if (head <= BEFORE_HEAD_MAX)
		return 0;
	found = search_from(th, head - BEFORE_HEAD_MAX, head);
	/* The page before the head's may not be mapped. */
	page = head & ~UINT64_C(4095);
	if (found == 0 && head - page < BEFORE_HEAD_MAX)
		found = search_from(th, page, head);
	return found;
}

void thread_pointer_set(struct thread *th, uint64_t pointer)
{
	if (pointer == 0)
		return;
	if (ARCH_POINTER_IN_REGS)
		th->pointer = pointer;
	else if (th->pointer != 0)
		th->target->reader.own_data_size = pointer - th->pointer;
	else if (th->target->reader.own_data_size != 0)
		th->pointer = pointer - th->target->reader.own_data_size;
}

void thread_pointer_find(struct thread *th)
{
	struct traced_process *t = th->target;
	uint64_t since;

	if (!t->reader.wants_thread_pointers || th->pointer != 0 || slow_memory_is_avoided(t))
		return;
	since = t->capture->options.now_ns();
	th->pointer = find_pointer(th);
	slow_memory_was_read(t, since, BEFORE_HEAD_MAX);
}

void thread_pointer_find_stack_end(struct thread *th)
{
	struct traced_process *t = th->target;
	uint64_t since;

	if (th->stack.hints.own_end != 0 || slow_memory_is_avoided(t))
		return;
	since = t->capture->options.now_ns();
	stack_hints_set_own_end(&th->stack.hints,
				th->pointer != 0 ? th->pointer : find_pointer(th));
	slow_memory_was_read(t, since, BEFORE_HEAD_MAX);
}
