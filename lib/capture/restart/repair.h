/*
 * Makes the kernel restart a system call that was interrupted only because of the tracer.
 *
 * Used while the thread is in a ptrace-stop. If restart/syscalls.h has a rule for the call, the
 * module replaces the call's result by a restart code. So the kernel restarts the call when the
 * thread is continued. If a signal handler runs first, the call returns EINTR, as without a tracer.
 */
#ifndef LIB_CAPTURE_RESTART_REPAIR_H
#define LIB_CAPTURE_RESTART_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/ptrace/arch.h"

/*
 * Returns true if the stop interrupted a call that must be restarted. False also if the call's
 * arguments are lost (arch_knows_arguments), and for each call of which repair_needs_undisturbed()
 * returns true. regs: the registers of the stopped thread tid. signal: that of a
 * signal-delivery-stop, else 0. A signal that stops the process (SIGSTOP, SIGTSTP and so on)
 * interrupts calls without a tracer, too. So for such a signal returns true only if the process
 * ignores the signal. Opens files of /proc only if the answer depends on them.
 */
bool repair_is_due(uint32_t tid, const struct arch_regs *regs, int signal);

/*
 * Returns true if the call has discarded its work because of an interrupt, and can do all of it
 * again if it is not interrupted (RESTART_UNDISTURBED). Then resume_wait() is the way to restart
 * it: repair_call() changes nothing.
 */
bool repair_needs_undisturbed(const struct arch_regs *regs);

/*
 * Replaces the result by the restart code if repair_is_due() is true. Returns true if the result
 * was replaced. Returns false if repair_is_due() is false, or if the result cannot be replaced, as
 * on processors without ARCH_RESULT_RESTARTS.
 */
bool repair_call(uint32_t tid, const struct arch_regs *regs, int signal);

/*
 * Call this for an interrupted call that is neither restarted nor resumed. Clears the error that a
 * recvmmsg(2) leaves on its socket if it is interrupted after its first message. The kernel keeps
 * EINTR, or its internal code 512, for the next call on that socket, which would fail
 * (do_recvmmsg(), net/socket.c). Does nothing for other calls, or if the socket cannot be copied
 * (descriptor_clear_error). pid: the process of thread tid.
 */
void repair_socket(int32_t pid, uint32_t tid, const struct arch_regs *regs);

#endif
