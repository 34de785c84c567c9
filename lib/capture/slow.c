#include "lib/capture/target.h"

/*
 * Whoever reads a process's memory, or its pagemap, waits for its mmap_lock
 * (mm/process_vm_access.c, fs/proc/task_mmu.c): as long as a thread of it takes
 * for a fork(2), an mprotect(2) or a munmap(2) of gigabytes. Meanwhile the
 * thread whose stack is read stands still, and all targets wait for us. There
 * is no way to ask for the lock without waiting for it, nor to see that it is
 * taken; but that it was is seen afterwards.
 *
 * So a read that took too long is paid for: its target's memory is left alone
 * until all that was waited for is 1 of SLOW_SHARE parts of the time.
 */
#define SLOW_SHARE 20

/* What a copy takes otherwise: a part of this, and a nanosecond for a byte. */
#define READ_NS (100 * NS_PER_US)

/* So much may be waited for at a stretch before that begins. */
#define SLOW_NS (1 * NS_PER_MS)

static bool is_slow(const struct target *t, uint64_t now_ns)
{
	return t->slow_until_ns > now_ns + SLOW_SHARE * SLOW_NS;
}

bool target_is_slow(const struct target *t)
{
	return t->slow_until_ns != 0 && is_slow(t, t->capture->options.now_ns());
}

/*
 * A first read that takes long may be chance, and is let pass. For so many
 * times its length after each it is known how often we have waited, which takes
 * a system call at each wake: those that come less often take less than a
 * thousandth of the time.
 */
#define WATCH_SHARE 1000

void capture_note_waits(struct capture *c, uint64_t now_ns)
{
	c->watching = now_ns < c->watch_until_ns;
	if (c->watching)
		c->options.switches(&c->switches);
}

/*
 * Since the tick, the last stops were taken, or the last question. Whoever had
 * our processor was not the target's memory, nor whoever had that of the
 * virtual machine, which is no switch.
 */
static bool has_waited(struct capture *c, uint64_t now_ns, uint64_t took_ns)
{
	const struct clock_switches before = c->switches;

	c->watch_until_ns = max_u64(c->watch_until_ns, now_ns + WATCH_SHARE * took_ns);
	if (!c->watching) {
		capture_note_waits(c, now_ns);
		return false;
	}
	c->options.switches(&c->switches);
	return c->switches.waited != before.waited && c->switches.preempted == before.preempted;
}

void target_was_read(struct target *t, uint64_t since_ns, size_t size)
{
	const uint64_t now_ns = t->capture->options.now_ns();
	const uint64_t took_ns = now_ns - since_ns;
	uint64_t n_slow = 1;

	if (took_ns <= READ_NS + size || !has_waited(t->capture, now_ns, took_ns))
		return;
	/* The share is that of all of them together. */
	FOR_EACH_TARGET (u, t->capture)
		n_slow += u != t && is_slow(u, now_ns);
	t->slow_until_ns = max_u64(t->slow_until_ns, now_ns) + n_slow * SLOW_SHARE * took_ns;
}
