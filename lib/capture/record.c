#include "lib/capture/record.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/array.h"
#include "lib/base/procfs.h"
#include "lib/capture/balance.h"
#include "lib/capture/priority.h"
#include "lib/capture/proc/memory.h"
#include "lib/capture/proc/proc.h"
#include "lib/capture/ptrace/arch.h"
#include "lib/capture/sample.h"
#include "lib/capture/schedule.h"
#include "lib/capture/sleepers.h"
#include "lib/capture/slow_memory.h"
#include "lib/capture/snapshot.h"
#include "lib/capture/stack_hints.h"
#include "lib/capture/state.h"
#include "lib/capture/thread_pointer.h"
#include "lib/capture/watched_parts.h"

/*
 * Samples leave this many bytes of the ring to other records, and to the first sample of a thread,
 * whose size is not known yet.
 */
#define RING_HEADROOM (2 * (sizeof(struct record_sample) + SAMPLE_STACK_MAX))

static struct record head(const struct traced_process *t, uint32_t tid, uint64_t tick,
			  uint64_t time_ns)
{
	return (struct record){.target = t->id, .tid = tid, .tick = tick, .time_ns = time_ns};
}

/*
 * Reserves room for a record. Returns NULL if there is none; the reader then gets all state anew
 * once there is room.
 */
static void *reserve(struct traced_process *t, size_t size)
{
	void *record;

	if (ring_reserve(&t->sink->ring, size, &record) == 0)
		return record;
	record_request_reset(t);
	return NULL;
}

bool record_event(struct traced_process *t, enum record_type type, uint32_t tid, uint64_t tick,
		  uint64_t time_ns)
{
	struct record *record = reserve(t, sizeof(*record));

	if (record == NULL)
		return false;
	*record = head(t, tid, tick, time_ns);
	ring_commit(&t->sink->ring, type, sizeof(*record));
	return true;
}

bool record_watched(struct traced_process *t, uint32_t list, uint32_t number, uint64_t hash,
		    uint64_t tick, uint64_t time_ns)
{
	struct record_watched *record = reserve(t, sizeof(*record));

	if (record == NULL)
		return false;
	record->h = head(t, 0, tick, time_ns);
	record->list = list;
	record->number = number;
	record->hash = hash;
	ring_commit(&t->sink->ring, RECORD_WATCHED, sizeof(*record));
	t->sink->watched++;
	return true;
}

void record_exits(struct traced_process *t, uint64_t tick, uint64_t time_ns)
{
	for (size_t i = 0; i < t->reader.n_gone; i++)
		(void)record_event(t, RECORD_EXIT, t->reader.gone[i], tick, time_ns);
	t->reader.n_gone = 0;
}

/*
 * Returns the time of the oldest tick for which an interrupted thread has not stopped yet, or
 * time_ns if there is none.
 */
static uint64_t settled_ns(const struct traced_process *t, uint64_t time_ns)
{
	uint64_t settled = time_ns;

	for (const struct thread *th = t->capture->pending; th != NULL; th = th->next_pending)
		if (th->target == t)
			settled = min_u64(settled, th->pending.ns);
	return settled;
}

bool record_tick(struct traced_process *t, uint64_t tick, uint64_t time_ns)
{
	struct record_tick *record = reserve(t, sizeof(*record));

	if (record == NULL)
		return false;
	record->h = head(t, 0, tick, time_ns);
	record->settled_ns = settled_ns(t, time_ns);
	record->elapsed_ticks = t->ticks.span.n;
	ring_commit(&t->sink->ring, RECORD_TICK, sizeof(*record));
	return true;
}

/* Reads a file of task/TID into text, NUL-terminated. */
static enum proc_outcome read_file(const struct thread *th, const char *name, char *text,
				   size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "task/%u/%s", th->tid, name);
	return proc_read_text(th->target->proc_fd, path, text, size);
}

/*
 * The bytes of _start's frame. The arguments and the environment above it are of no use to the
 * unwinder.
 */
#define START_FRAME 64

/*
 * Reads the end of the main thread's stack: field 28 of stat, after the name, which may contain any
 * bytes (proc(5)). Changes nothing for other threads, or if the kernel does not show the value.
 */
static enum proc_outcome read_start_of_stack(struct thread *th)
{
	enum proc_outcome outcome;
	char text[1024];
	uint64_t start;

	if (th->stack.hints.own_end != 0 || th->tid != (uint32_t)th->target->pid)
		return PROC_READ;
	outcome = read_file(th, "stat", text, sizeof(text));
	start = procfs_stat_number(text, 28);
	if (start != 0)
		stack_hints_set_own_end(&th->stack.hints, start + START_FRAME);
	return outcome;
}

/*
 * When names are read again. Most threads get their name soon after their start, so a name is read
 * again after NAME_TICKS, then after 8 times as many, up to NAME_TICKS_MAX.
 */
#define NAME_TICKS     8
#define NAME_TICKS_MAX 512

static bool write_thread(struct thread *th, const char comm[COMM_SIZE], uint64_t tick,
			 uint64_t time_ns)
{
	struct traced_process *t = th->target;
	struct record_thread *record;

	record = reserve(t, sizeof(*record));
	if (record == NULL)
		return false;
	record->h = head(t, th->tid, tick, time_ns);
	record->is_main = th->tid == (uint32_t)t->pid;
	record->reserved = 0;
	record->pointer = t->reader.wants_thread_pointers ? th->pointer : 0;
	memcpy(record->comm, comm, COMM_SIZE);
	ring_commit(&t->sink->ring, RECORD_THREAD, sizeof(*record));
	memcpy(th->reader.comm, comm, COMM_SIZE);
	th->reader.pointer = th->pointer;
	return true;
}

static enum proc_outcome read_name(const struct thread *th, char ret[COMM_SIZE + 1])
{
	enum proc_outcome outcome;

	memset(ret, 0, COMM_SIZE + 1);
	outcome = read_file(th, "comm", ret, COMM_SIZE + 1);
	/* A sample of a thread that is not traced can be written after the thread's end. */
	if (outcome == PROC_GONE && th->target->capture->options.perf != NULL)
		outcome = proc_read_text(th->target->proc_fd, "comm", ret, COMM_SIZE + 1);
	ret[strcspn(ret, "\n")] = '\0';
	return outcome;
}

/*
 * Sets the tick at which the name is read again, and spreads the threads of a large process over
 * several ticks.
 */
static void wait_for_name(struct thread *th, uint64_t tick, uint64_t ticks)
{
	th->reader.name_wait = ticks;
	th->reader.name_tick = tick + ticks + th->tid % ticks;
}

/* The bytes of the ring that are reserved for a thread's first sample. */
#define FIRST_SAMPLE_BYTES 32768

void record_begin_thread(struct thread *th)
{
	th->stack.last_size = FIRST_SAMPLE_BYTES;
}

void record_exit_later(struct traced_process *t, uint32_t tid)
{
	if (array_grow(t->reader.gone, t->reader.n_gone, t->reader.cap_gone) < 0) {
		/* If memory cannot be allocated, all threads are announced anew instead. */
		record_request_reset(t);
		return;
	}
	t->reader.gone[t->reader.n_gone++] = tid;
	schedule_at_once(t);
}

void record_forget_exits(struct traced_process *t)
{
	t->reader.n_gone = 0;
}

bool record_announce(struct thread *th, uint64_t tick, uint64_t time_ns,
		     enum missed_reason *ret_reason)
{
	struct traced_process *t = th->target;
	char comm[COMM_SIZE + 1];

	if (th->reader.announced)
		return true;
	*ret_reason = MISSED_NO_RESOURCES;
	/* A thread that is gone has no name. */
	if (read_start_of_stack(th) == PROC_LACK || read_name(th, comm) == PROC_LACK)
		return false;
	thread_pointer_find(th);
	*ret_reason = record_no_room_reason(t);
	if (!write_thread(th, comm, tick, time_ns))
		return false;
	th->reader.announced = true;
	wait_for_name(th, tick, NAME_TICKS);
	t->reader.names_tick = min_u64(t->reader.names_tick, th->reader.name_tick);
	return true;
}

void record_pointer(struct thread *th, uint64_t pointer, uint64_t tick, uint64_t time_ns)
{
	char comm[COMM_SIZE];

	thread_pointer_set(th, pointer);
	if (!th->target->reader.wants_thread_pointers || th->pointer == th->reader.pointer)
		return;
	memcpy(comm, th->reader.comm, sizeof(comm));
	(void)write_thread(th, comm, tick, time_ns);
}

void record_rename(struct thread *th, uint64_t tick, uint64_t time_ns)
{
	struct traced_process *t = th->target;
	char comm[COMM_SIZE + 1];

	if (!th->reader.announced || tick < th->reader.name_tick)
		return;
	wait_for_name(th, tick, min_u64(NAME_TICKS * th->reader.name_wait, NAME_TICKS_MAX));
	priority_read(th);
	thread_pointer_find(th);
	/* If the thread is gone, the name that is known stays. */
	if (read_name(th, comm) == PROC_READ && comm[0] != '\0' &&
	    ((t->reader.wants_thread_pointers && th->pointer != th->reader.pointer) ||
	     strncmp(comm, th->reader.comm, COMM_SIZE) != 0))
		(void)write_thread(th, comm, tick, time_ns);
}

void record_name_changed(struct thread *th)
{
	th->reader.name_tick = th->target->reader.names_tick = 0;
}

/*
 * Returns the first tick at which a name has to be read again. For a sleeping thread the reading
 * stops after some times: another thread can change the name, but rarely does.
 */
static uint64_t rename_due(const struct traced_process *t, struct thread *list, uint64_t tick,
			   uint64_t time_ns)
{
	uint64_t next = UINT64_MAX;

	for (struct thread *th = list; th != NULL; th = th->next) {
		const bool is_news =
			t->reader.wants_thread_pointers && th->pointer != th->reader.pointer;

		if (!th->reader.announced ||
		    (th->asleep && !is_news && th->reader.name_wait == NAME_TICKS_MAX))
			continue;
		record_rename(th, tick, time_ns);
		next = min_u64(next, th->reader.name_tick);
	}
	return next;
}

void record_rename_all(struct traced_process *t, uint64_t tick, uint64_t time_ns)
{
	uint64_t next;

	if (tick < t->reader.names_tick)
		return;
	next = min_u64(rename_due(t, t->threads.awake, tick, time_ns),
		       rename_due(t, t->threads.asleep, tick, time_ns));
	t->reader.names_tick = max_u64(next, tick + NAME_TICKS);
}

bool record_knows(const struct thread *th)
{
	return th->reader.announced && !th->target->reader.needs_reset;
}

void record_forget_sample(struct thread *th)
{
	th->stop.known = false;
	th->observed.mark_known = false;
}

void record_missed(struct thread *th, enum missed_reason reason, uint64_t ticks, uint64_t tick,
		   uint64_t time_ns)
{
	th->target->counters->missed[reason] += ticks;
	/* A thread without a processor adds nothing to the CPU time. */
	if (reason != MISSED_NO_STACK)
		balance_forget(th);
	th->reader.ready = false;
	record_forget_sample(th);
	if (record_knows(th) && !th->reader.unknown)
		th->reader.unknown =
			record_event(th->target, RECORD_MISSED, th->tid, tick, time_ns);
}

void record_ready(struct thread *th, uint64_t tick, uint64_t time_ns)
{
	if (!th->reader.ready)
		(void)record_event(th->target, RECORD_READY, th->tid, tick, time_ns);
	th->reader.ready = true;
}

void record_running(struct thread *th, uint64_t tick, uint64_t time_ns)
{
	(void)record_event(th->target, RECORD_RUNNING, th->tid, tick, time_ns);
	th->reader.ready = false;
	/* The reader takes the stack of the last run again. */
	th->reader.unknown = false;
}

void record_waiting(struct thread *th, uint64_t tick, uint64_t time_ns)
{
	(void)record_event(th->target, RECORD_WAITING, th->tid, tick, time_ns);
	th->reader.ready = false;
}

bool record_has_room(const struct thread *th)
{
	const struct capture_sink *sink = th->target->sink;

	return !sink->reader_is_gone &&
	       ring_space(&sink->ring) >= sink->promised + th->stack.last_size + RING_HEADROOM;
}

/* After so many ticks capture checks again which pages of the stack are in memory. */
#define MEMORY_TICKS 16

int record_begin_sample(struct thread *th, uint64_t tick, uint64_t time_ns, const uint64_t *regs,
			uint64_t regs_known, uint32_t flags, struct record_sample **ret,
			size_t *ret_size)
{
	struct traced_process *t = th->target;
	struct stack_plan plan;
	uint64_t since;
	void *memory;
	int r;

	if (slow_memory_is_avoided(t))
		return -EBUSY;
	stack_hints_plan(&th->stack.hints, regs[ARCH_SP], &plan);
	r = ring_reserve(&t->sink->ring, snapshot_size(&plan), &memory);
	if (r < 0)
		return r;
	*ret = memory;
	if (tick - th->stack.memory_tick >= MEMORY_TICKS) {
		th->stack.memory_tick = tick;
		th->stack.seen_memory = (struct memory_seen){0};
	}
	(*ret)->h = head(t, th->tid, tick, time_ns);
	since = t->capture->options.now_ns();
	/*
	 * The memory is read by the thread's number, because a leader that has exited has no
	 * memory.
	 */
	*ret_size = snapshot_take(*ret, t->pagemap_fd, &th->stack.seen_memory, (int32_t)th->tid,
				  regs, regs_known, flags, &plan);
	slow_memory_was_read(t, since, *ret_size);
	th->stack.copied_top = (*ret)->stack_addr + (*ret)->stack_size;
	th->stack.copied_second = (*ret)->second_size > 0 ? plan.second : 0;
	return 0;
}

enum missed_reason record_no_room_reason(const struct traced_process *t)
{
	return t->sink->reader_is_gone ? MISSED_NO_READER : MISSED_RING_FULL;
}

enum missed_reason record_missed_reason(const struct traced_process *t, int error)
{
	switch (error) {
	case -ENOBUFS:
		return record_no_room_reason(t);
	case -EBUSY:
		return MISSED_MEMORY_SLOW;
	default:
		return MISSED_EXITED;
	}
}

void record_commit_sample(struct thread *th, size_t size, bool is_ready)
{
	th->target->counters->stack_bytes += size - sizeof(struct record_sample);
	ring_commit(&th->target->sink->ring, RECORD_SAMPLE, size);
	th->stack.last_size = size;
	th->reader.unknown = false;
	th->reader.ready = is_ready;
}

bool record_write_sample(struct thread *th, const struct record_sample *sample, size_t size,
			 uint64_t tick, uint64_t time_ns)
{
	struct record_sample *record;
	void *memory;

	if (ring_reserve(&th->target->sink->ring, size, &memory) < 0)
		return false;
	record = memory;
	memcpy(record, sample, size);
	record->h = head(th->target, th->tid, tick, time_ns);
	th->stack.copied_top = sample->stack_addr + sample->stack_size;
	th->stack.copied_second = 0;
	record_commit_sample(th, size, false);
	return true;
}

void record_drop_sample(struct thread *th)
{
	ring_abort(&th->target->sink->ring);
}

void record_request_reset(struct traced_process *t)
{
	t->reader.needs_reset = true;
	schedule_at_once(t);
}

void record_reset(struct traced_process *t, uint64_t tick, uint64_t time_ns)
{
	t->reader.needs_reset = false;
	/* After a reset the reader knows no threads, so it needs no RECORD_EXIT. */
	t->reader.n_gone = 0;
	if (!record_event(t, RECORD_RESET, 0, tick, time_ns))
		return;
	watched_parts_forget(t);
	sleepers_wake_all(t);
	for (struct thread *th = t->threads.awake; th != NULL; th = th->next) {
		th->reader.announced = false;
		th->reader.unknown = false;
		record_forget_sample(th);
	}
}

/*
 * A sample has the time at which its period begins, and capture looks at the threads later in the
 * period. An event in between gets the time of the begin, so that it is not later than the samples
 * that follow. The result is never earlier than the last tick.
 */
uint64_t record_time(const struct traced_process *t)
{
	const struct tick *tick = &t->capture->tick;
	const uint64_t now_ns = t->capture->options.now_ns();

	/*
	 * Without tracing the tick is a period that has ended. Its samples have the begin of the
	 * period, until the process has been looked at.
	 */
	if (t->capture->options.perf != NULL)
		return t->ticks.span.last < tick->number
			       ? max_u64(tick->begin_ns, t->ticks.span.last_ns)
			       : tick->begin_ns + tick->period_ns;
	/* Before the first tick there is no period. */
	if (now_ns < tick->begin_ns + tick->period_ns || tick->period_ns == 0)
		return max_u64(now_ns, t->ticks.span.last_ns);
	return now_ns - (now_ns - tick->begin_ns) % tick->period_ns;
}
