#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/capture/ptrace/arch.h"
#include "lib/capture/proc/memory.h"
#include "lib/capture/target.h"

/*
 * How far in front of the head of a thread's list of robust locks its own data
 * may begin: 736 bytes with glibc on x86_64 (struct pthread in nptl/descr.h).
 */
#define BEFORE_HEAD_MAX 2048

void capture_want_pointers(struct capture *c, uint32_t target)
{
	FOR_EACH_TARGET (t, c)
		if (t->id == target)
			t->wants_pointers = true;
}

/* 0: it has none, or may not be asked for it. */
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
 * glibc's list is in the thread's own data, to whose beginning the thread
 * pointer points: so what points to itself there, twice over, is that
 * (arch_is_own_data). musl has a list only where one was needed.
 */
static uint64_t look_from(const struct thread *th, uint64_t from, uint64_t head)
{
	uint64_t words[BEFORE_HEAD_MAX / sizeof(uint64_t)];
	size_t n = (size_t)(head - from) / sizeof(words[0]);

	if (memory_read(th->target->pagemap_fd, NULL, (int32_t)th->tid, from, words,
			n * sizeof(words[0]), 0) != (ssize_t)(n * sizeof(words[0])))
		return 0;
	/* The nearest one counts. */
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
	found = look_from(th, head - BEFORE_HEAD_MAX, head);
	/* There may be nothing before its page. */
	page = head & ~UINT64_C(4095);
	if (found == 0 && head - page < BEFORE_HEAD_MAX)
		found = look_from(th, page, head);
	return found;
}

void thread_find_pointer(struct thread *th)
{
	struct target *t = th->target;
	uint64_t since;

	if (!t->wants_pointers || th->pointer != 0 || target_is_slow(t))
		return;
	since = t->capture->options.now_ns();
	th->pointer = find_pointer(th);
	target_was_read(t, since, BEFORE_HEAD_MAX);
}

void thread_find_end(struct thread *th)
{
	struct target *t = th->target;
	uint64_t since;

	if (th->hints.own_end != 0 || target_is_slow(t))
		return;
	since = t->capture->options.now_ns();
	th->hints.own_end = th->pointer != 0 ? th->pointer : find_pointer(th);
	target_was_read(t, since, BEFORE_HEAD_MAX);
}
