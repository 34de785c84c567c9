/*
 * Reads the records that the kernel writes into the ring of a perf event (perf_event_open(2)) with
 * the attributes that perf.c sets. Used by perf.c. Pure: works on bytes in memory. The kernel alone
 * writes these bytes; the module checks every size nevertheless.
 */
#ifndef LIB_CAPTURE_PERF_DECODE_H
#define LIB_CAPTURE_PERF_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/ptrace/arch.h"

/*
 * The sample_type of the event (linux/perf_event.h, which users of this macro include): what each
 * PERF_RECORD_SAMPLE contains. All other records end with the process, thread and time
 * (sample_id_all).
 */
#define PERF_SAMPLE_TYPE \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/* The unread bytes of a ring, from tail up to head. Position n in the ring is base[n % size]. */
struct perf_bytes {
	const uint8_t *base;
	uint64_t size; /* a power of two */
	uint64_t head, tail;
};

enum perf_kind {
	PERF_KIND_SAMPLE,    /* the thread was on the processor */
	PERF_KIND_FORK,	     /* a new thread; a new process if pid differs from parent */
	PERF_KIND_NAME,	     /* the thread has another name */
	PERF_KIND_EXEC,	     /* the process executes a program */
	PERF_KIND_EXIT,	     /* the thread ends */
	PERF_KIND_LOST,	     /* the ring had no room for some records */
	PERF_KIND_THROTTLED, /* the kernel stops the event for a while (perf_event_max_sample_rate)
			      */
	PERF_KIND_OTHER,     /* to be ignored */
};

struct perf_record {
	enum perf_kind kind;
	size_t size; /* bytes in the ring */
	/*
	 * Of the thread that the record is about; PERF_KIND_FORK: the new thread. 0: a thread of
	 * another pid namespace, or the idle task. PERF_KIND_LOST, _THROTTLED and _OTHER: always 0.
	 */
	int32_t pid, tid;
	int32_t parent;	  /* PERF_KIND_FORK: the process of the parent */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	/* The members from here on are set with PERF_KIND_SAMPLE only. */
	bool in_kernel; /* the thread was in the kernel: registers are those at its entry */
	/* The thread has 64-bit user code. false: regs and the stack are not valid. */
	bool has_user;
	uint64_t regs[ARCH_REGS]; /* by DWARF number */
	uint64_t stack_at;	  /* position of the copied stack in the ring */
	size_t stack_size;	  /* bytes of it, from the stack pointer upwards; 0: none */
};

/* Returns the registers that the event asks for: sample_regs_user of perf_event_attr. */
uint64_t perf_regs_mask(void);

/*
 * Reads the record at b->tail. To get to the next record, the caller adds ret->size to b->tail.
 * Returns 1; 0 if the ring has no unread record; or -EPROTO if a size is impossible: then the
 * records behind it cannot be found either.
 */
must_check int perf_decode(const struct perf_bytes *b, struct perf_record *ret);

/*
 * Copies n bytes from position `at` of the ring, such as the stack_at of a record. All of them must
 * be unread bytes.
 */
void perf_copy(const struct perf_bytes *b, uint64_t at, void *to, size_t n);

/*
 * Returns which registers of a sample are valid, bit n for regs[n]. is_old: the kernel is older
 * than Linux 5.11. Then on x86_64 the callee-saved registers are not valid in samples of a thread
 * in the kernel: they are -1 (perf_get_regs_user() in arch/x86/kernel/perf_regs.c before commit
 * 76a4efa80900). aarch64 saves all registers at each entry into the kernel.
 */
uint64_t perf_regs_known(const struct perf_record *record, bool is_old);

#endif
