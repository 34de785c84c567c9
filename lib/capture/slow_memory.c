#include "lib/capture/slow_memory.h"

#include "lib/capture/state.h"

/*
 * A read of a process's memory, or of its pagemap, waits for the process's mmap_lock
 * (mm/process_vm_access.c, fs/proc/task_mmu.c). A thread of the process holds that lock during
 * fork(2), mprotect(2) or munmap(2), for milliseconds if gigabytes are mapped. Meanwhile the thread
 * whose stack is read stays stopped, and all targets wait for the tracer.
 *
 * The tracer can neither try the lock without waiting nor see its state, but afterwards it knows
 * that it has waited. So a slow read has a cost for its target: the memory is not read again until
 * the time waited is at most 1/SLOW_SHARE of the time that has passed.
 */
#define SLOW_SHARE 20

/* A copy without a wait takes less than this, plus one nanosecond for each byte. */
#define READ_NS (100 * NS_PER_US)

/* Waits have no consequence until they add up to this. */
#define SLOW_NS (1 * NS_PER_MS)

static bool is_slow(const struct traced_process *t, uint64_t now_ns)
{
	return t->slow_until_ns > now_ns + SLOW_SHARE * SLOW_NS;
}

void slow_memory_begin_tick(struct traced_process *t)
{
	if (t->slow_until_ns < t->capture->charged_ns)
		t->slow_until_ns = 0;
}

bool slow_memory_is_avoided(const struct traced_process *t)
{
	return t->slow_until_ns != 0 && is_slow(t, t->capture->options.now_ns());
}

/*
 * A first slow read may be chance, and has no consequence. After each slow read the tracer's
 * context switches are counted for WATCH_SHARE times the duration of the read, which costs a system
 * call at each wake. Slow reads that are rarer than that take less than a thousandth of the time.
 */
#define WATCH_SHARE 1000

void slow_memory_note_switches(struct capture *c, uint64_t now_ns)
{
	c->switch_watch.on = now_ns < c->switch_watch.until_ns;
	if (c->switch_watch.on)
		c->options.switches(&c->switch_watch.switches);
}

/*
 * Returns true if the tracer has waited since its switches were last read, and was not preempted. A
 * preempted tracer has waited for another thread, and not for the target's memory. (If a virtual
 * machine loses its processor, no switch is counted at all.)
 */
static bool has_waited(struct capture *c, uint64_t now_ns, uint64_t took_ns)
{
	const struct clock_switches before = c->switch_watch.switches;

	c->switch_watch.until_ns =
		max_u64(c->switch_watch.until_ns, now_ns + WATCH_SHARE * took_ns);
	if (!c->switch_watch.on) {
		slow_memory_note_switches(c, now_ns);
		return false;
	}
	c->options.switches(&c->switch_watch.switches);
	return c->switch_watch.switches.waited != before.waited &&
	       c->switch_watch.switches.preempted == before.preempted;
}

void slow_memory_was_read(struct traced_process *t, uint64_t since_ns, size_t size)
{
	const uint64_t now_ns = t->capture->options.now_ns();
	const uint64_t took_ns = now_ns - since_ns;
	uint64_t n_slow = 1;

	if (took_ns <= READ_NS + size || !has_waited(t->capture, now_ns, took_ns))
		return;
	/* SLOW_SHARE is the limit for all slow targets together. */
	FOR_EACH_TARGET (u, t->capture)
		n_slow += u != t && is_slow(u, now_ns);
	t->slow_until_ns = max_u64(t->slow_until_ns, now_ns) + n_slow * SLOW_SHARE * took_ns;
}
