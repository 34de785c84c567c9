#include "lib/capture/waits.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/capture/proc/status.h"
#include "lib/capture/record.h"
#include "lib/capture/restart/syscalls.h"
#include "lib/capture/sleepers.h"

static struct activity_place place_of(const struct arch_regs *raw, long nr)
{
	struct activity_place place = {.call = nr, .pc = arch_pc_in_call(raw)};
	uint64_t regs[ARCH_REGS];

	arch_to_dwarf(raw, regs);
	place.sp = regs[ARCH_SP];
	for (unsigned int i = 0; i < ARCH_ARGUMENTS; i++)
		place.arguments[i] = arch_argument(raw, i);
	return place;
}

static bool is_at(const struct activity_place *a, uint64_t sp, uint64_t pc)
{
	return a->sp == sp && a->pc == pc;
}

#define WORDS_BYTES (WAITS_WORDS * sizeof(uint64_t))

static bool has_words(const struct record_sample *record)
{
	return record->stack_addr == record->regs[ARCH_SP] && record->stack_size >= WORDS_BYTES;
}

bool waits_keep(struct thread *th, const struct arch_regs *raw, const uint64_t *regs)
{
	struct thread_waits *w = &th->waits;
	long nr, result;

	if (!arch_interrupted_call(raw, &nr, &result) || !syscall_was_waiting(result))
		return false;
	w->place_known = !ARCH_LINK_REGISTER;
	w->place = place_of(raw, nr);
	w->first_known = arch_knows_arguments(raw);
	memcpy(w->regs, regs, sizeof(w->regs));
	return true;
}

void waits_keep_words(struct thread *th, const struct record_sample *record)
{
	if (!ARCH_LINK_REGISTER || !has_words(record))
		return;
	th->waits.place_known = true;
	memcpy(th->waits.words, record->stack, WORDS_BYTES);
}

static bool is_kept(const struct thread_waits *w, const struct activity_place *place)
{
	return w->place_known && is_at(&w->place, place->sp, place->pc) &&
	       (!ARCH_LINK_REGISTER ||
		activity_same_call(&w->place, place, w->first_known ? 0 : 1));
}

uint64_t waits_recall(const struct thread *th, const struct activity_place *place, uint64_t *regs)
{
	if (!is_kept(&th->waits, place))
		return 0;
	for (unsigned int i = 0; i < ARCH_REGS; i++)
		if (ARCH_REMEMBERED & (1u << i))
			regs[i] = th->waits.regs[i];
	return ARCH_REMEMBERED;
}

void waits_check(struct thread *th, struct record_sample *record)
{
	if (!ARCH_LINK_REGISTER || (record->flags & SAMPLE_REMEMBERED) == 0 ||
	    (has_words(record) && memcmp(record->stack, th->waits.words, WORDS_BYTES) == 0))
		return;
	record->flags &= ~(uint32_t)SAMPLE_REMEMBERED;
	record->regs_known &= ~(uint64_t)ARCH_REMEMBERED;
	th->waits.place_known = false;
}

void waits_request(struct thread *th, uint64_t sp, uint64_t pc)
{
	struct thread_waits *w = &th->waits;

	w->requested = true;
	w->requested_sp = sp;
	w->requested_pc = pc;
	/* The next tick looks at the thread again. */
	if (th->asleep && is_at(&th->sleep.place, sp, pc)) {
		sleepers_wake(th);
		record_forget_sample(th);
	}
}

/*
 * A thread that stops and waits on gets a processor twice: to stop, and to go on. If it has had no
 * more time slices since the last stop for its registers, it is in the same wait.
 */
#define SLICES_OF_STOP 2

static bool may_stop(const struct thread *th, const struct activity_place *place, uint64_t now_ns)
{
	const struct traced_stops *stops = &th->target->stops;
	const struct thread_waits *w = &th->waits;

	if (!th->look.known ||
	    (w->was_stopped && th->look.mark.slices - w->stopped_slices <= SLICES_OF_STOP))
		return false;
	if (now_ns - stops->since_ns < NS_PER_SEC && stops->n >= WAITS_STOPS)
		return false;
	/* The kernel restarts some calls by restart_syscall(2), which a filter may not allow. */
	return syscall_always_goes_on(place->call) && !status_is_filtered(th->tid);
}

bool waits_need_stop(struct thread *th, const struct activity_place *place)
{
	const uint64_t now_ns = th->target->capture->options.now_ns();
	struct traced_stops *stops = &th->target->stops;
	struct thread_waits *w = &th->waits;

	if (!w->requested || !is_at(place, w->requested_sp, w->requested_pc) || is_kept(w, place) ||
	    !may_stop(th, place, now_ns))
		return false;
	w->requested = false;
	w->was_stopped = true;
	w->stopped_slices = th->look.mark.slices;
	if (now_ns - stops->since_ns >= NS_PER_SEC)
		*stops = (struct traced_stops){.since_ns = now_ns};
	stops->n++;
	return true;
}

/* Returns true if a stop that found these registers has interrupted the call at this place. */
static bool is_call_of(const struct arch_regs *raw, const struct activity_place *place)
{
	struct activity_place stopped;
	long nr, result;

	if (!arch_interrupted_call(raw, &nr, &result))
		return false;
	stopped = place_of(raw, nr);
	return nr == place->call && is_at(&stopped, place->sp, place->pc) &&
	       activity_same_call(&stopped, place, 1);
}

void waits_find_argument(const struct thread *th, struct arch_regs *raw)
{
	const struct activity_place *place = NULL;
	struct activity_mark mark;

	if (arch_knows_arguments(raw) || !arch_in_call(raw) || !activity_mark(&th->activity, &mark))
		return;
	/*
	 * Since the look the thread has got a processor once: for the stop. If the thread was
	 * interrupted, it has not run from the mark before the look to the interrupt.
	 */
	if (th->asleep && mark.slices == th->sleep.mark.slices + 1)
		place = &th->sleep.place;
	else if (th->due == DUE_SAMPLE && th->pending.was_blocked && th->pending.mark_known &&
		 th->look.known && activity_same(&th->look.mark, &th->pending.mark) &&
		 mark.slices == th->pending.mark.slices + 1)
		place = &th->pending.blocked_at;
	if (place != NULL && is_call_of(raw, place))
		arch_set_first_argument(raw, place->arguments[0]);
}

/* A short transfer may be one that the signal has ended. */
static bool may_be_ended_by_signal(long nr, long result)
{
	return syscall_was_waiting(result) ||
	       (result > 0 && syscall_rule(nr)->asked != ASKED_NOTHING);
}

void waits_note_failure(struct thread *th, const struct arch_regs *raw, int signal)
{
	long nr, result;

	if (!arch_interrupted_call(raw, &nr, &result) || !may_be_ended_by_signal(nr, result) ||
	    status_goes_unnoticed(th->tid, signal))
		return;
	th->waits.failed = true;
	th->waits.failed_at = place_of(raw, nr);
}

bool waits_has_failed(const struct thread *th, const struct arch_regs *raw)
{
	const struct activity_place *at = &th->waits.failed_at;
	long nr, result;

	return th->waits.failed && arch_interrupted_call(raw, &nr, &result) &&
	       is_at(at, place_of(raw, nr).sp, place_of(raw, nr).pc);
}

void waits_seen(struct thread *th, const struct activity_place *place)
{
	if (th->waits.failed && is_at(&th->waits.failed_at, place->sp, place->pc))
		th->waits.failed = false;
}
