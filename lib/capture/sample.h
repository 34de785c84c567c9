/*
 * The raw record: what capture saw of a thread at a tick, as it stands in the
 * ring (lib/base/ring.h). This is the contract between capture and unwind, and
 * the format of recorded samples in tests; it has no code.
 *
 * How a thread's time is told:
 * - Time is cut into ticks, numbered from the start of the daemon's run.
 *   RECORD_TICK announces each that a target was looked at.
 * - RECORD_SAMPLE is a thread's registers and stack at its tick. It holds until
 *   the thread's next record: a tick without a record of the thread means that
 *   it is unchanged (blocked in the same place), or that it was interrupted at
 *   the record's tick and has not executed an instruction since.
 * - A target in which nobody runs is not looked at at each tick. What is found
 *   after ticks were left out is told as of one of these: tick.c.
 * - RECORD_WAITING says that a thread that was on a processor at its sample's
 *   tick had none from this tick on, until it was interrupted.
 * - RECORD_MISSED says that it is not known any more what the thread does,
 *   from its tick on, until the thread's next sample.
 * - Records of one thread are in the order of their ticks, but a sample may
 *   stand behind later RECORD_TICKs: the thread took that long to stop.
 *   RECORD_TICK says up to where nothing more is to come.
 * - A new ring, and RECORD_RESET, start from nothing: threads are announced
 *   and sampled anew.
 *
 * Byte order and sizes are the host's; the reader takes nothing for granted
 * but the size of each record.
 */
#ifndef LIB_CAPTURE_SAMPLE_H
#define LIB_CAPTURE_SAMPLE_H

#include <stdint.h>

#include "lib/base/ring.h"

enum record_type {
	RECORD_TICK = 1,
	/* A thread, before its first sample; or its new name, or pointer. */
	RECORD_THREAD,
	RECORD_SAMPLE,
	RECORD_MISSED,
	RECORD_EXIT,  /* the thread is gone: alive for the last time before this
			 tick */
	RECORD_EXEC,  /* a new program: all threads but tid are gone, so is the
			 memory */
	RECORD_RESET, /* capture starts anew with this target */
	RECORD_END,   /* the target's last record */
	/* The thread waits for a processor; its stack is as it was. */
	RECORD_WAITING,
};

/* The start of every record. */
struct record {
	struct ring_record ring;
	uint32_t target; /* the broker's number of the target */
	uint32_t tid;	 /* 0 where the record is about the process */
	uint64_t tick;
	uint64_t time_ns; /* of the tick, CLOCK_MONOTONIC, the same for all
			     threads */
};

struct record_tick {
	struct record h;
	/* Every sample of a tick before this time has been written. */
	uint64_t settled_ns;
	/*
	 * Ticks of the target since its last RECORD_TICK, this one included.
	 * More than 1: capture did not look at the target at some of them,
	 * because all its threads slept, or because capture came late. They lie
	 * at equal distances.
	 */
	uint64_t due;
};

#define COMM_SIZE 16 /* TASK_COMM_LEN, its NUL included */

struct record_thread {
	struct record h;
	uint32_t is_main;
	char comm[COMM_SIZE]; /* bytes the target chose; a NUL is not certain */
	uint32_t reserved;
	/*
	 * Its thread pointer: of x86_64's threads, that of pthread_self(3). 0:
	 * not known, yet or ever.
	 */
	uint64_t pointer;
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
	/* It was on a processor; else waiting for one, or blocked. */
	SAMPLE_RUNNING = 1 << 0,
	/* Stack above the copied bytes was left out because of the cap. */
	SAMPLE_CAPPED = 1 << 1,
	/*
	 * The callee-saved registers are those of an earlier stop at the same
	 * place (call, sp and pc): likely right, to be checked.
	 */
	SAMPLE_REMEMBERED = 1 << 2,
	/* The same as SAMPLE_CAPPED, of the second range. */
	SAMPLE_SECOND_CAPPED = 1 << 3,
};

/*
 * What capture knew of the stacks of a sample's thread: what the reader has
 * said in hints, and where the thread's own stack ends. The reader compares it
 * with what the sample's walk needed, and remembers nothing.
 */
struct sample_known {
	uint64_t top; /* where the stack ends that it is on; 0: not known */
	/*
	 * Where it goes on on its own stack, as the reader said, or, where top
	 * is not known, as capture guessed. 0: nowhere.
	 */
	uint64_t second;
	uint64_t own_end; /* of its own stack; 0: not known */
};

/* The usual limit of a stack, RLIMIT_STACK; below may be anything. */
#define SAMPLE_OWN_STACK_MAX (8u << 20)

struct record_sample {
	struct record h;
	uint32_t flags;
	uint32_t arch;
	uint64_t regs_known; /* bit n: regs[n] is valid; sp and pc always are */
	uint64_t regs[SAMPLE_REGS_MAX];
	uint64_t stack_addr; /* of stack[0]; equals the stack pointer, less the
				red zone where there is one */
	uint32_t stack_size; /* bytes in stack[], padding of the record excluded
			      */
	/*
	 * Bytes of a second range, which the reader has asked for, or may need;
	 * 0: none.
	 * Behind stack[], at the next multiple of 8: struct sample_second.
	 */
	uint32_t second_size;
	struct sample_known known;
	uint8_t stack[];
};

/*
 * A part of the thread's own stack, where the thread is on another one, such as
 * that of its signals' handlers.
 */
struct sample_second {
	uint64_t addr; /* of bytes[0] */
	uint8_t bytes[];
};

/*
 * The bytes of each range at most. Of a deeper stack the root is cut off, and
 * the flags say so.
 */
#define SAMPLE_STACK_MAX (512u * 1024)

/*
 * The same of a thread's own stack, once the reader has asked for all of it. A
 * copy of so much takes 0.1 to 0.2 ms where the ring's memory is in use
 * already, 9 ms where the kernel has to make it first (512 KiB: 0.02 to 0.04,
 * and 2 ms).
 */
#define SAMPLE_WHOLE_MAX (2048u * 1024)

#endif
