/*
 * What capture knows of a thread's waits from its stops, and what it needs a stop for.
 *
 * A blocked thread is sampled without a stop, from the files of /proc: sp, pc, and the number and
 * the arguments of its call. The registers of an earlier stop in the same call complete that.
 *
 * Where a function without a frame has its return address in a register only (ARCH_LINK_REGISTER),
 * the stack of a thread that waits in such a function is unknown before the first stop there. The
 * unwinder then asks for the registers, and capture stops the thread: once in a wait, only in calls
 * that go on after a stop (syscall_always_goes_on), and at most WAITS_STOPS times a second in a
 * process.
 *
 * Where the kernel has forgotten the interrupted call at the stop (ptrace/arch.h), the call's first
 * argument is known here if a look found the thread in this wait.
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
 * Keeps the registers of a thread that was stopped in a blocked call, for later samples of the same
 * call. regs: by DWARF number. Returns false, and changes nothing, if the thread was not in such a
 * call.
 */
bool waits_keep(struct thread *th, const struct arch_regs *raw, const uint64_t *regs);

/*
 * Completes waits_keep() by the sample of the same stop. With ARCH_LINK_REGISTER the registers are
 * not used without this call.
 */
void waits_keep_words(struct thread *th, const struct record_sample *record);

/*
 * Adds the kept registers to those of a thread that is blocked at this place, if it is the place of
 * that stop. Returns which registers were added (bit n: regs[n]).
 */
uint64_t waits_recall(const struct thread *th, const struct activity_place *place, uint64_t *regs);

/*
 * Checks the words at sp in a sample that waits_recall() has completed, and takes the registers
 * out of the sample again if the words are not those of the stop. The stack pointers of two callers
 * of a function without a frame may be equal. The caller's frame begins with the address to which
 * it returns, or with other data of it.
 */
void waits_check(struct thread *th, struct record_sample *record);

/*
 * Takes the unwinder's request: it lacks the registers of a thread that is blocked at this sp and
 * pc. They may be any numbers.
 */
void waits_request(struct thread *th, uint64_t sp, uint64_t pc);

/*
 * Returns true if the thread, which is blocked at this place, is to be stopped for its registers.
 * Then the caller interrupts it.
 */
bool waits_need_stop(struct thread *th, const struct activity_place *place);

/*
 * Sets the first argument of the call that a stop has interrupted, where the registers do not have
 * it and the stop has ended a wait in which a look has found the thread.
 */
void waits_find_argument(const struct thread *th, struct arch_regs *raw);

/*
 * Notes that the thread's call fails with EINTR because of a signal with a handler. Called where
 * the kernel has forgotten the call at the stop: when the handler has returned, the thread looks as
 * if a stop had ended that call. waits_has_failed() is true at that place until the thread is seen
 * there in a call again (waits_seen).
 */
void waits_failed(struct thread *th, const struct arch_regs *raw);
bool waits_has_failed(const struct thread *th, const struct arch_regs *raw);
void waits_seen(struct thread *th, const struct activity_place *place);

#endif
