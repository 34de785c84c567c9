/*
 * Keeps what stops have shown of a thread's waits in system calls, and decides when a blocked
 * thread is stopped for its registers. Used by look.c at looks, by stop.c at stops, and by
 * capture.c for unwind's requests.
 *
 * A place is where a thread waits: sp, pc, and the number and arguments of its call (struct
 * activity_place). Two places are the same if sp and pc are. With ARCH_LINK_REGISTER,
 * waits_recall() and waits_find_argument() also compare the calls. Capture samples a blocked thread
 * without a stop: /proc shows the place. If an earlier stop at the same place has shown the other
 * registers, this module adds them.
 *
 * Two facts are special to processors with ARCH_LINK_REGISTER (aarch64):
 * - A function without a stack frame has its return address in a register only. If a thread waits
 *   in such a function, its stack cannot be unwound without that register. So unwind requests the
 *   registers, and capture stops the thread. The limits: once in a wait; only in a call that goes
 *   on after a stop (syscall_always_goes_on); only a thread without a seccomp filter; at most
 *   WAITS_STOPS stops a second in a process.
 * - At a stop the registers lack the first argument of an interrupted call (arch_knows_arguments).
 *   waits_find_argument() adds it if a look found the thread in the same wait.
 */
#ifndef LIB_CAPTURE_WAITS_H
#define LIB_CAPTURE_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/ptrace/arch.h"
#include "lib/capture/sample.h"
#include "lib/capture/state.h"

#define WAITS_STOPS 10

/*
 * Keeps the registers of a stop that interrupted a waiting call, for later samples of the same
 * place. raw: as read from the kernel; regs[ARCH_REGS]: by DWARF number. Returns false, and changes
 * nothing, if the stop interrupted no call that waited (syscall_was_waiting).
 */
bool waits_keep(struct thread *th, const struct arch_regs *raw, const uint64_t *regs);

/*
 * Keeps the words at sp of a sample, for waits_check(). Call this after waits_keep() has returned
 * true, with the sample of that stop. With ARCH_LINK_REGISTER, waits_recall() does not use the kept
 * registers before this call.
 */
void waits_keep_words(struct thread *th, const struct record_sample *record);

/*
 * Writes the registers of waits_keep() into regs[ARCH_REGS], if place, where the thread is blocked,
 * is the place of that stop. Returns which registers were written (bit n: regs[n]); 0: none.
 */
uint64_t waits_recall(const struct thread *th, const struct activity_place *place, uint64_t *regs);

/*
 * Call this with a sample that has registers of waits_recall() (SAMPLE_REMEMBERED); other samples
 * do not change. If the sample's words at sp are not those of the stop, removes these registers and
 * forgets them: other words show that another caller, with the same sp, waits here now. Does
 * nothing without ARCH_LINK_REGISTER.
 */
void waits_check(struct thread *th, struct record_sample *record);

/*
 * Takes unwind's request for the registers of a thread that is blocked at this sp and pc. Replaces
 * the thread's earlier request. The request has no effect while the thread is elsewhere, so sp and
 * pc may be any numbers.
 */
void waits_request(struct thread *th, uint64_t sp, uint64_t pc);

/*
 * Returns true if the thread, which is blocked at this place, is to be stopped for its registers:
 * unwind has requested them, waits_recall() does not have them, and the limits above permit the
 * stop. After true the caller must interrupt the thread, because this function has removed the
 * request and counted the stop.
 */
bool waits_need_stop(struct thread *th, const struct activity_place *place);

/*
 * Sets the first argument of the interrupted call in raw, if the registers lack it and a look has
 * found the thread in the wait that this stop interrupted. Otherwise changes nothing.
 */
void waits_find_argument(const struct thread *th, struct arch_regs *raw);

/*
 * A signal with a handler makes a call fail with EINTR, or end with a part of a transfer. But when
 * the handler has returned, the thread looks as if a stop had interrupted that call, and capture
 * would repair or resume the call. These three functions prevent that:
 * - waits_note_failure() notes the place of the call, unless the thread does not notice the signal.
 * stop.c calls it at the signal's delivery.
 * - waits_has_failed() returns true if raw is at the noted place.
 * - waits_seen() forgets the noted place if it is *place. Call it when a look has found the thread
 *   in a call at *place: the thread waits there again.
 */
void waits_note_failure(struct thread *th, const struct arch_regs *raw, int signal);
bool waits_has_failed(const struct thread *th, const struct arch_regs *raw);
void waits_seen(struct thread *th, const struct activity_place *place);

#endif
