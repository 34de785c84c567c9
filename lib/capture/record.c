#include "lib/capture/target.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/procfs.h"
#include "lib/capture/proc/proc.h"
#include "lib/capture/snapshot.h"

/*
 * Samples leave this much of the ring to the other records, and to the first
 * sample of a thread, whose depth is not known yet.
 */
#define RING_HEADROOM (2 * (sizeof(struct record_sample) + SAMPLE_STACK_MAX))

static struct record head(const struct target *t, uint32_t tid, uint64_t tick, uint64_t time_ns)
{
	return (struct record){.target = t->id, .tid = tid, .tick = tick, .time_ns = time_ns};
}

/*
 * A record that must not be lost: without room for it the reader has lost
 * track, and is told everything anew once there is some.
 */
static void *reserve(struct target *t, size_t size)
{
	void *record;

	if (ring_reserve(&t->sink->ring, size, &record) == 0)
		return record;
	target_reset(t);
	return NULL;
}

bool target_tell(struct target *t, enum record_type type, uint32_t tid, uint64_t tick,
		 uint64_t time_ns)
{
	struct record *record = reserve(t, sizeof(*record));

	if (record == NULL)
		return false;
	*record = head(t, tid, tick, time_ns);
	ring_commit(&t->sink->ring, type, sizeof(*record));
	return true;
}

void target_tell_gone(struct target *t, uint64_t tick, uint64_t time_ns)
{
	for (size_t i = 0; i < t->n_gone; i++)
		(void)target_tell(t, RECORD_EXIT, t->gone[i], tick, time_ns);
	t->n_gone = 0;
}

/* The tick of the oldest interrupt that has not led to a stop. */
static uint64_t settled_ns(const struct target *t, uint64_t time_ns)
{
	uint64_t settled = time_ns;

	for (const struct thread *th = t->capture->pending; th != NULL; th = th->next_pending)
		if (th->target == t)
			settled = min_u64(settled, th->pending_ns);
	return settled;
}

bool target_tell_tick(struct target *t, uint64_t tick, uint64_t time_ns)
{
	struct record_tick *record = reserve(t, sizeof(*record));

	if (record == NULL)
		return false;
	record->h = head(t, 0, tick, time_ns);
	record->settled_ns = settled_ns(t, time_ns);
	record->due = t->due_ticks;
	ring_commit(&t->sink->ring, RECORD_TICK, sizeof(*record));
	return true;
}

/* A file of task/TID into text, NUL-terminated. */
static enum proc_outcome read_file(const struct thread *th, const char *name, char *text,
				   size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "task/%u/%s", th->tid, name);
	return proc_read_text(th->target->proc_fd, path, text, size);
}

/* What _start finds there (arguments, environment) is of no use; its own is. */
#define START_FRAME 64

/*
 * Where the main thread's stack begins: field 28 of stat, after the name, which
 * may hold anything (proc(5)). Left as it is if the kernel does not tell, and
 * of other threads.
 */
static enum proc_outcome read_start_of_stack(struct thread *th)
{
	enum proc_outcome outcome;
	char text[1024];
	uint64_t start;

	if (th->hints.own_end != 0 || th->tid != (uint32_t)th->target->pid)
		return PROC_READ;
	outcome = read_file(th, "stat", text, sizeof(text));
	start = procfs_stat_number(text, 28);
	if (start != 0)
		th->hints.own_end = start + START_FRAME;
	return outcome;
}

/*
 * Threads are named after they start, mostly soon: their names are read again
 * after so many ticks, then after 8 times as many, up to the most.
 */
#define NAME_TICKS     8
#define NAME_TICKS_MAX 512

static bool tell_name(struct thread *th, const char comm[COMM_SIZE], uint64_t tick,
		      uint64_t time_ns)
{
	struct target *t = th->target;
	struct record_thread *record;

	record = reserve(t, sizeof(*record));
	if (record == NULL)
		return false;
	record->h = head(t, th->tid, tick, time_ns);
	record->is_main = th->tid == (uint32_t)t->pid;
	record->reserved = 0;
	record->pointer = t->wants_pointers ? th->pointer : 0;
	memcpy(record->comm, comm, COMM_SIZE);
	ring_commit(&t->sink->ring, RECORD_THREAD, sizeof(*record));
	memcpy(th->comm, comm, COMM_SIZE);
	th->told_pointer = th->pointer;
	return true;
}

static enum proc_outcome read_name(const struct thread *th, char ret[COMM_SIZE + 1])
{
	enum proc_outcome outcome;

	memset(ret, 0, COMM_SIZE + 1);
	outcome = read_file(th, "comm", ret, COMM_SIZE + 1);
	ret[strcspn(ret, "\n")] = '\0';
	return outcome;
}

/* Not all threads of a large process at one tick. */
static void wait_for_name(struct thread *th, uint64_t tick, uint64_t ticks)
{
	th->name_wait = ticks;
	th->name_tick = tick + ticks + th->tid % ticks;
}

bool thread_announce(struct thread *th, uint64_t tick, uint64_t time_ns,
		     enum missed_reason *ret_reason)
{
	struct target *t = th->target;
	char comm[COMM_SIZE + 1];

	if (th->announced)
		return true;
	*ret_reason = MISSED_NO_RESOURCES;
	/* One that is gone has no name. */
	if (read_start_of_stack(th) == PROC_LACK || read_name(th, comm) == PROC_LACK)
		return false;
	thread_find_pointer(th);
	*ret_reason = target_no_room(t);
	if (!tell_name(th, comm, tick, time_ns))
		return false;
	th->announced = true;
	wait_for_name(th, tick, NAME_TICKS);
	t->names_tick = min_u64(t->names_tick, th->name_tick);
	return true;
}

void thread_tell_pointer(struct thread *th, uint64_t pointer, uint64_t tick, uint64_t time_ns)
{
	char comm[COMM_SIZE];

	if (pointer != 0)
		th->pointer = pointer;
	if (!th->target->wants_pointers || th->pointer == th->told_pointer)
		return;
	memcpy(comm, th->comm, sizeof(comm));
	(void)tell_name(th, comm, tick, time_ns);
}

void thread_rename(struct thread *th, uint64_t tick, uint64_t time_ns)
{
	struct target *t = th->target;
	char comm[COMM_SIZE + 1];

	if (!th->announced || tick < th->name_tick)
		return;
	wait_for_name(th, tick, min_u64(NAME_TICKS * th->name_wait, NAME_TICKS_MAX));
	thread_look_priority(th);
	thread_find_pointer(th);
	/* Gone: the name that is known is the better one. */
	if (read_name(th, comm) == PROC_READ && comm[0] != '\0' &&
	    ((t->wants_pointers && th->pointer != th->told_pointer) ||
	     strncmp(comm, th->comm, COMM_SIZE) != 0))
		(void)tell_name(th, comm, tick, time_ns);
}

/*
 * Returns the first tick at which one is due again. The name of who is asleep
 * is left alone in the end: another thread can change it, but hardly does.
 */
static uint64_t rename_due(const struct target *t, struct thread *list, uint64_t tick,
			   uint64_t time_ns)
{
	uint64_t next = UINT64_MAX;

	for (struct thread *th = list; th != NULL; th = th->next) {
		const bool is_news = t->wants_pointers && th->pointer != th->told_pointer;

		if (!th->announced || (th->asleep && !is_news && th->name_wait == NAME_TICKS_MAX))
			continue;
		thread_rename(th, tick, time_ns);
		next = min_u64(next, th->name_tick);
	}
	return next;
}

void target_rename(struct target *t, uint64_t tick, uint64_t time_ns)
{
	uint64_t next;

	if (tick < t->names_tick)
		return;
	next = min_u64(rename_due(t, t->awake, tick, time_ns),
		       rename_due(t, t->asleep, tick, time_ns));
	t->names_tick = max_u64(next, tick + NAME_TICKS);
}

bool thread_is_known(const struct thread *th)
{
	return th->announced && !th->target->needs_reset;
}

void thread_missed(struct thread *th, enum missed_reason reason, uint64_t ticks, uint64_t tick,
		   uint64_t time_ns)
{
	th->target->counters->missed[reason] += ticks;
	th->told_running = false;
	th->stop_known = false;
	if (thread_is_known(th) && !th->unknown)
		th->unknown = target_tell(th->target, RECORD_MISSED, th->tid, tick, time_ns);
}

void thread_tell_waiting(struct thread *th, uint64_t tick, uint64_t time_ns)
{
	if (th->told_running)
		(void)target_tell(th->target, RECORD_WAITING, th->tid, tick, time_ns);
	th->told_running = false;
}

bool thread_has_room(const struct thread *th)
{
	const struct capture_sink *sink = th->target->sink;

	return !sink->is_left &&
	       ring_space(&sink->ring) >= sink->promised + th->last_size + RING_HEADROOM;
}

/* It is looked anew, after so many ticks, which of its pages are there. */
#define MEMORY_TICKS 16

int thread_copy(struct thread *th, uint64_t tick, uint64_t time_ns, const uint64_t *regs,
		uint64_t regs_known, uint32_t flags, struct record_sample **ret, size_t *ret_size)
{
	struct target *t = th->target;
	struct stack_plan plan;
	uint64_t since;
	void *memory;
	int r;

	if (target_is_slow(t))
		return -EBUSY;
	stack_hints_plan(&th->hints, regs[ARCH_SP], &plan);
	r = ring_reserve(&t->sink->ring, snapshot_size(&plan), &memory);
	if (r < 0)
		return r;
	*ret = memory;
	if (tick - th->memory_tick >= MEMORY_TICKS) {
		th->memory_tick = tick;
		th->seen_memory = (struct memory_seen){0};
	}
	(*ret)->h = head(t, th->tid, tick, time_ns);
	since = t->capture->options.now_ns();
	/* By the thread: a leader that has exited has no memory any more. */
	*ret_size = snapshot_take(*ret, t->pagemap_fd, &th->seen_memory, (int32_t)th->tid, regs,
				  regs_known, flags, &plan);
	target_was_read(t, since, *ret_size);
	th->copied_top = (*ret)->stack_addr + (*ret)->stack_size;
	th->copied_second = (*ret)->second_size > 0 ? plan.second : 0;
	return 0;
}

enum missed_reason target_no_room(const struct target *t)
{
	return t->sink->is_left ? MISSED_NO_READER : MISSED_RING_FULL;
}

enum missed_reason missed_reason_of(const struct target *t, int error)
{
	switch (error) {
	case -ENOBUFS:
		return target_no_room(t);
	case -EBUSY:
		return MISSED_MEMORY_SLOW;
	default:
		return MISSED_EXITED;
	}
}

void thread_commit(struct thread *th, size_t size)
{
	th->target->counters->stack_bytes += size - sizeof(struct record_sample);
	ring_commit(&th->target->sink->ring, RECORD_SAMPLE, size);
	th->last_size = size;
	th->unknown = false;
}

void thread_drop(struct thread *th)
{
	ring_abort(&th->target->sink->ring);
}
