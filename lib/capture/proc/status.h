/*
 * Reads the state of a thread from /proc/TID/status and stat.
 *
 * Capture calls most functions while the thread is stopped, and opening a file makes the stop
 * longer. So capture calls them only where what it does with a system call or a signal depends on
 * the answer. If the file cannot be read, a function that returns bool returns the value by which
 * capture changes less for the target; the comment of the function names this value. A function
 * that returns enum proc_answer returns PROC_NO for a thread that is gone, else PROC_UNKNOWN.
 */
#ifndef LIB_CAPTURE_PROC_STATUS_H
#define LIB_CAPTURE_PROC_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/proc/proc.h"

struct status_state {
	char letter;	 /* "State" of proc_pid_status(5) */
	uint32_t tracer; /* tid of the tracing thread; 0: none */
};

/* Reads the State and TracerPid of task/TID/status below proc_fd, the descriptor of /proc/PID. */
must_check enum proc_outcome status_read_state(int proc_fd, uint32_t tid, struct status_state *ret);

/*
 * Returns true for a thread that has ended and that its parent or tracer has not reaped yet, such
 * as a leader while other threads of its process live.
 */
bool status_is_dead(const struct status_state *state);

/*
 * Returns true if the thread is under a seccomp filter, or in strict mode, or if that cannot be
 * read. Do not keep the result: a thread can get a filter at any time.
 */
bool status_is_filtered(uint32_t tid);

/* Returns true if the signal's action is SIG_IGN; false if that cannot be read. */
bool status_ignores(uint32_t tid, int signal);

/* Returns true if the process has a handler for the signal; false if that cannot be read. */
bool status_catches(uint32_t tid, int signal);

/* Returns true if the thread has blocked the signal; false if that cannot be read. */
bool status_blocks(uint32_t tid, int signal);

/*
 * Returns true if the process neither catches nor ignores the signal; false if that cannot be read.
 */
bool status_has_default_action(uint32_t tid, int signal);

/*
 * Returns true if the signal is ignored: by SIG_IGN, or by its default action (signal(7)). False if
 * that cannot be read.
 */
bool status_goes_unnoticed(uint32_t tid, int signal);

/*
 * Returns true if a signal that the thread has not blocked is pending; false if that cannot be
 * read.
 */
bool status_has_pending(uint32_t tid);

/*
 * Returns PROC_YES for a thread that the kernel made for its own work in an io_uring. Capture does
 * not attach to such a thread: it never runs code of the program, and an interrupt makes the
 * operation that it waits for fail (result -512). Recognised by its flags and its name (proc(5),
 * stat).
 */
enum proc_answer status_is_worker(uint32_t tid);

/* Returns PROC_YES if the thread's process is writing a core dump. */
enum proc_answer status_dumps_core(uint32_t tid);

#endif
