#include "lib/capture/perf/decode.h"

#include <asm/perf_regs.h>
#include <linux/perf_event.h>
#include <string.h>

/* In the order in which the kernel writes registers: by their bits in sample_regs_user. */
#if defined(__x86_64__)
static const struct {
	uint8_t perf, dwarf;
} registers[] = {
	{PERF_REG_X86_AX, 0},	{PERF_REG_X86_BX, 3},	{PERF_REG_X86_CX, 2},
	{PERF_REG_X86_DX, 1},	{PERF_REG_X86_SI, 4},	{PERF_REG_X86_DI, 5},
	{PERF_REG_X86_BP, 6},	{PERF_REG_X86_SP, 7},	{PERF_REG_X86_IP, 16},
	{PERF_REG_X86_R8, 8},	{PERF_REG_X86_R9, 9},	{PERF_REG_X86_R10, 10},
	{PERF_REG_X86_R11, 11}, {PERF_REG_X86_R12, 12}, {PERF_REG_X86_R13, 13},
	{PERF_REG_X86_R14, 14}, {PERF_REG_X86_R15, 15},
};
_Static_assert(array_size(registers) == ARCH_REGS, "all registers");

uint64_t perf_regs_mask(void)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < array_size(registers); i++)
		mask |= UINT64_C(1) << registers[i].perf;
	return mask;
}

static void to_dwarf(const uint64_t *from, uint64_t *to)
{
	for (size_t i = 0; i < array_size(registers); i++)
		to[registers[i].dwarf] = from[i];
}
#elif defined(__aarch64__)
/* The kernel's numbers are those of DWARF. */
uint64_t perf_regs_mask(void)
{
	return ARCH_REGS_ALL;
}

static void to_dwarf(const uint64_t *from, uint64_t *to)
{
	memcpy(to, from, ARCH_REGS * sizeof(*to));
}
#endif

void perf_copy(const struct perf_bytes *b, uint64_t at, void *to, size_t n)
{
	const uint64_t offset = at & (b->size - 1);
	const size_t first = min_size(n, b->size - offset);

	memcpy(to, b->base + offset, first);
	memcpy((uint8_t *)to + first, b->base, n - first);
}

/* Reads numbers one after the other; does not pass the end of the record. */
struct cursor {
	const struct perf_bytes *bytes;
	uint64_t at, end;
	bool is_short; /* the record ended before a number that was asked for */
};

static void take(struct cursor *c, void *to, size_t n)
{
	if (c->end - c->at < n) {
		c->is_short = true;
		memset(to, 0, n);
		return;
	}
	perf_copy(c->bytes, c->at, to, n);
	c->at += n;
}

static uint64_t take_u64(struct cursor *c)
{
	uint64_t n;

	take(c, &n, sizeof(n));
	return n;
}

static int32_t take_i32(struct cursor *c)
{
	int32_t n;

	take(c, &n, sizeof(n));
	return n;
}

/*
 * The registers, and the stack behind them: its size in the record, the bytes, and how many of them
 * the kernel could copy. Without user code both are empty, and a size of 0 has no bytes behind it.
 */
static void take_user(struct cursor *c, struct perf_record *ret)
{
	const uint64_t abi = take_u64(c);
	uint64_t regs[ARCH_REGS] = {0};
	uint64_t size;

	/* A 32-bit thread has the same number of registers. */
	if (abi != PERF_SAMPLE_REGS_ABI_NONE)
		take(c, regs, sizeof(regs));
	to_dwarf(regs, ret->regs);
	/* Up to Linux 6.17 an io_uring's thread of the kernel has registers: all are 0. */
	ret->has_user = abi == PERF_SAMPLE_REGS_ABI_64 && ret->regs[ARCH_SP] != 0;
	size = take_u64(c);
	if (size == 0)
		return;
	if (size > c->end - c->at) {
		c->is_short = true;
		return;
	}
	ret->stack_at = c->at;
	c->at += size;
	ret->stack_size = min_size(take_u64(c), size);
}

static void take_sample(struct cursor *c, uint16_t misc, struct perf_record *ret)
{
	ret->kind = PERF_KIND_SAMPLE;
	ret->in_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	ret->pid = take_i32(c);
	ret->tid = take_i32(c);
	ret->time_ns = take_u64(c);
	take_user(c, ret);
}

/* pid, that of the parent, tid, that of the parent. */
static void take_task(struct cursor *c, enum perf_kind kind, struct perf_record *ret)
{
	ret->kind = kind;
	ret->pid = take_i32(c);
	ret->parent = take_i32(c);
	ret->tid = take_i32(c);
}

static void take_name(struct cursor *c, uint16_t misc, struct perf_record *ret)
{
	ret->kind = misc & PERF_RECORD_MISC_COMM_EXEC ? PERF_KIND_EXEC : PERF_KIND_NAME;
	ret->pid = take_i32(c);
	ret->tid = take_i32(c);
}

/* Every record but a sample ends with its time. */
static void take_time(struct cursor *c, struct perf_record *ret)
{
	if (c->end - c->at < sizeof(ret->time_ns)) {
		c->is_short = true;
		return;
	}
	c->at = c->end - sizeof(ret->time_ns);
	ret->time_ns = take_u64(c);
}

int perf_decode(const struct perf_bytes *b, struct perf_record *ret)
{
	struct cursor c = {.bytes = b, .at = b->tail, .end = b->head};
	struct perf_event_header header;

	if (b->head == b->tail)
		return 0;
	take(&c, &header, sizeof(header));
	if (c.is_short || header.size < sizeof(header) || header.size > b->head - b->tail ||
	    b->head - b->tail > b->size)
		return -EPROTO;
	c.end = b->tail + header.size;
	*ret = (struct perf_record){.kind = PERF_KIND_OTHER, .size = header.size};
	switch (header.type) {
	case PERF_RECORD_SAMPLE:
		take_sample(&c, header.misc, ret);
		return c.is_short ? -EPROTO : 1;
	case PERF_RECORD_FORK:
		take_task(&c, PERF_KIND_FORK, ret);
		break;
	case PERF_RECORD_EXIT:
		take_task(&c, PERF_KIND_EXIT, ret);
		break;
	case PERF_RECORD_COMM:
		take_name(&c, header.misc, ret);
		break;
	case PERF_RECORD_LOST:
		ret->kind = PERF_KIND_LOST;
		break;
	case PERF_RECORD_THROTTLE:
		ret->kind = PERF_KIND_THROTTLED;
		break;
	default:
		break;
	}
	take_time(&c, ret);
	return c.is_short ? -EPROTO : 1;
}

uint64_t perf_regs_known(const struct perf_record *record, bool is_old)
{
	const bool lacks = !ARCH_LINK_REGISTER && is_old && record->in_kernel;

	return lacks ? ARCH_REGS_ALL & ~(uint64_t)ARCH_CALLEE_SAVED : ARCH_REGS_ALL;
}
