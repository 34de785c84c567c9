/*
 * Makes the kernel restart a system call that was interrupted only because of the tracer.
 *
 * Used while the thread is in a ptrace-stop. Where restart/syscalls.h allows it, the result of the
 * interrupted call is rewritten, so that the kernel restarts the call when the thread is continued.
 * If a handler runs first, the kernel makes EINTR of it, as it would without a tracer.
 */
#ifndef LIB_CAPTURE_RESTART_REPAIR_H
#define LIB_CAPTURE_RESTART_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/ptrace/arch.h"

/*
 * Returns true if the call must be restarted. regs: the registers of the stopped thread tid.
 * signal: that of a signal-delivery-stop, else 0. Returns false for a signal that stops the process
 * (SIGSTOP, SIGTSTP and so on), which interrupts calls without a tracer, too; but true if the
 * process ignores that signal. Opens files of /proc only if a call was interrupted and the answer
 * depends on them.
 */
bool repair_is_due(uint32_t tid, const struct arch_regs *regs, int signal);

/*
 * Returns true if the call has discarded its work because of an interrupt, and can do all of it
 * again if it is not interrupted (RESTART_UNDISTURBED). The caller then uses resume_wait, not
 * repair_call.
 */
bool repair_needs_undisturbed(const struct arch_regs *regs);

/* Rewrites the result if repair_is_due() is true. Returns true if it has. */
bool repair_call(uint32_t tid, const struct arch_regs *regs, int signal);

/*
 * Clears the error that a recvmmsg(2) leaves on its socket if it is interrupted after its first
 * message: the kernel keeps EINTR, or its internal code 512, for the next call on that socket,
 * which then fails (do_recvmmsg(), net/socket.c). Does nothing for other calls, or where
 * descriptor.h cannot copy the socket. pid: the process of thread tid.
 */
void repair_socket(int32_t pid, uint32_t tid, const struct arch_regs *regs);

#endif
