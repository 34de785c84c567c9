/*
 * The records that capture writes into a ring (lib/base/ring.h) and unwind reads: the registers and
 * stack of a thread at a tick, and changes of threads and processes. Recorded samples in tests have
 * the same format. The header has no code.
 *
 * How the records describe a thread's time:
 * - Time is divided into ticks, numbered from the start of the daemon's run. Capture writes one
 *   RECORD_TICK for each tick at which it looks at a target, after the looks. When capture leaves a
 *   target that may live on, it repeats the last RECORD_TICK, with the settled_ns of that moment.
 * - At each tick a thread is in one of three states. Running: on a processor (SAMPLE_RUNNING).
 *   Ready: runnable without a processor (SAMPLE_READY). Waiting: blocked (neither flag).
 * - RECORD_SAMPLE has a thread's registers and stack at its tick. State and stack of the sample
 *   hold until the thread's next record other than RECORD_THREAD. A tick without a record of the
 *   thread means that the thread is unchanged: it is still blocked in the same place, or it has not
 *   executed an instruction since capture interrupted it for its last sample.
 * - Capture does not look at a target at each tick while all its threads sleep. What a look finds
 *   after skipped ticks is recorded with the first of the ticks that the look stands for (struct
 *   covered_ticks, state.h).
 * - RECORD_READY, RECORD_WAITING: the thread is ready, or waiting, from this tick on. Its stack is
 *   that of its last sample.
 * - RECORD_RUNNING: the thread is running from this tick on. Its stack is unknown; the best guess
 *   is that of its last sample with SAMPLE_RUNNING and without SAMPLE_ASLEEP.
 * - RECORD_MISSED: the thread's state and stack are unknown from this tick on. A later
 *   RECORD_READY or RECORD_WAITING makes only the state known again; after RECORD_RUNNING the best
 *   guess of the stack holds again, too.
 * - Records of one thread are in the order of their ticks. But a sample may come after RECORD_TICKs
 *   of later ticks, because the thread took that long to stop. settled_ns of RECORD_TICK states for
 *   which ticks no more samples follow.
 * - RECORD_WATCHED comes before the samples of its tick.
 * - After RECORD_RESET, and in a new ring, all threads are announced and sampled anew.
 *
 * Byte order and sizes are those of the machine. The reader must not trust any field but the size
 * of each record.
 */
#ifndef LIB_CAPTURE_SAMPLE_H
#define LIB_CAPTURE_SAMPLE_H

#include <stdint.h>

#include "lib/base/ring.h"

enum record_type {
	RECORD_TICK = 1,
	/*
	 * Announces a thread before its first sample; repeated if its name or pointer has changed.
	 */
	RECORD_THREAD,
	RECORD_SAMPLE,
	RECORD_MISSED, /* the thread's state is unknown from this tick on */
	RECORD_EXIT,   /* the thread is gone; it was alive before this tick */
	RECORD_EXEC,   /* a new program: the memory and all threads but tid are gone */
	RECORD_RESET,  /* the reader forgets all threads; capture announces them anew */
	RECORD_END,    /* the target's last record */
	/* The thread is ready, or waiting; its stack is unchanged. */
	RECORD_READY,
	RECORD_WAITING,
	RECORD_RUNNING, /* the thread is running */
	RECORD_WATCHED, /* a watched part of memory has other bytes than before */
};

/* The start of every record. */
struct record {
	struct ring_record ring;
	uint32_t target; /* the broker's number of the target */
	uint32_t tid;	 /* 0 where the record is about the process */
	uint64_t tick;
	/*
	 * CLOCK_MONOTONIC. Of a sample: the begin of its tick's period, the same for all threads.
	 * Of an event between two ticks: its time, but not later than the samples that follow.
	 */
	uint64_t time_ns;
};

struct record_tick {
	struct record h;
	/* All samples with a time_ns before this time have been written. */
	uint64_t settled_ns;
	/*
	 * Ticks of the target since its last RECORD_TICK, this one included. More than 1: capture
	 * did not look at the target at some ticks, because all threads slept or because capture
	 * was late. These ticks lie at equal distances.
	 */
	uint64_t elapsed_ticks;
};

#define COMM_SIZE 16 /* TASK_COMM_LEN, its NUL included */

struct record_thread {
	struct record h;
	uint32_t is_main;     /* 1: the leader of the process; else 0 */
	char comm[COMM_SIZE]; /* bytes that the target chose, perhaps without a NUL */
	uint32_t reserved;
	uint64_t pointer; /* the value of pthread_self(3); 0: not known */
};

/*
 * A watched part of the process's memory (lib/base/watch_part.h) has other bytes than in the last
 * record about it. Capture hashes the parts that are due (lib/capture/watched_parts.h) before the
 * first look or sample of a tick. At a tick without looks and samples it hashes no part.
 */
struct record_watched {
	struct record h;
	uint32_t list;	 /* the number that the reader gave to the list of parts */
	uint32_t number; /* the part's index in that list */
	/* watch_part_hash(); 0: not in memory or not readable, as before the first record */
	uint64_t hash;
};

/*
 * Registers by DWARF number. x86_64: rax rdx rcx rbx rsi rdi rbp rsp r8..r15,
 * return address column = 16 holds rip. aarch64: x0..x30, sp = 31, pc = 32.
 */
#define SAMPLE_REGS_MAX 33

#define SAMPLE_X86_64_RBP 6
#define SAMPLE_X86_64_RSP 7
#define SAMPLE_X86_64_RIP 16

enum sample_arch {
	SAMPLE_ARCH_X86_64 = 1,
	SAMPLE_ARCH_AARCH64 = 2,
};

enum sample_flags {
	SAMPLE_RUNNING = 1 << 0, /* the thread was on a processor at the tick */
	/* The copy ends at its limit, so the stack above the copied bytes may be missing. */
	SAMPLE_CAPPED = 1 << 1,
	/*
	 * The callee-saved registers are those of an earlier stop at the same place (call, sp and
	 * pc): probably right, to be checked.
	 */
	SAMPLE_REMEMBERED = 1 << 2,
	/* SAMPLE_CAPPED for the second range. */
	SAMPLE_SECOND_CAPPED = 1 << 3,
	/* The thread was runnable without a processor. Not set with SAMPLE_RUNNING. */
	SAMPLE_READY = 1 << 4,
	/*
	 * With SAMPLE_RUNNING: the thread ran at the tick, and has gone to sleep since. The stack
	 * is that of the wait; for where it ran the guess of RECORD_RUNNING holds.
	 */
	SAMPLE_ASLEEP = 1 << 5,
};

/*
 * What capture knew of the thread's stacks when it took the sample: from the reader's hints
 * (stack_hints.h), and the end of the thread's own stack, on which the thread began. The reader
 * compares this with what the unwinding of the sample needed, so it need not remember its hints.
 */
struct sample_known {
	uint64_t top; /* the end of the stack that the thread is on; 0: not known */
	/*
	 * The address from which the unwind continues on the thread's own stack. It comes from a
	 * hint; if top is 0, it may be a guess of capture. 0: the unwind does not go on there.
	 */
	uint64_t second;
	uint64_t own_end; /* the end of the thread's own stack; 0: not known */
};

/*
 * The most bytes below own_end that count as the thread's own stack: 8 MiB is the usual limit of a
 * stack (RLIMIT_STACK).
 */
#define SAMPLE_OWN_STACK_MAX (8u << 20)

struct record_sample {
	struct record h;
	uint32_t flags;	     /* enum sample_flags */
	uint32_t arch;	     /* enum sample_arch */
	uint64_t regs_known; /* bit n: regs[n] is valid; sp and pc always are */
	uint64_t regs[SAMPLE_REGS_MAX];
	uint64_t stack_addr; /* address of stack[0]: the stack pointer, less the red zone where
				there is one */
	uint32_t stack_size; /* bytes in stack[], without the padding of the record */
	/*
	 * Bytes of a second range, which the reader has asked for or may need; 0: none. The range
	 * is a struct sample_second behind stack[], at the next multiple of 8.
	 */
	uint32_t second_size;
	struct sample_known known;
	uint8_t stack[];
};

/*
 * A part of the thread's own stack, if the thread is on another one, such as that of its signal
 * handlers.
 */
struct sample_second {
	uint64_t addr; /* of bytes[0] */
	uint8_t bytes[];
};

/*
 * The most bytes of each range. If a stack is deeper, the sample lacks its part at the root, and
 * has SAMPLE_CAPPED or SAMPLE_SECOND_CAPPED.
 */
#define SAMPLE_STACK_MAX (512u * 1024)

/*
 * The limit for a thread's own stack after the reader has asked for all of it. Such a copy takes
 * 0.1 to 0.2 ms if the ring's memory is in use already, and 9 ms if the kernel has to provide it
 * first. (512 KiB: 0.02 to 0.04 ms, and 2 ms.)
 */
#define SAMPLE_WHOLE_MAX (2048u * 1024)

#endif
