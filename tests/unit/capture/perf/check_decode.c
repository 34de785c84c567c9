#include "lib/capture/perf/decode.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

#define RING_BYTES  1024
#define STACK_BYTES 64

/* A ring, filled from position begin on. */
static uint8_t ring[RING_BYTES];
static struct perf_bytes bytes;

static void begin(uint64_t position)
{
	bytes = (struct perf_bytes){
		.base = ring, .size = sizeof(ring), .head = position, .tail = position};
}

static void put(const void *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ring[bytes.head++ % sizeof(ring)] = ((const uint8_t *)from)[i];
}

static void put_u64(uint64_t n)
{
	put(&n, sizeof(n));
}

static void put_two(uint32_t a, uint32_t b)
{
	put(&a, sizeof(a));
	put(&b, sizeof(b));
}

static void put_header(uint32_t type, uint16_t misc, size_t size)
{
	const struct perf_event_header h = {.type = type, .misc = misc, .size = (uint16_t)size};

	put(&h, sizeof(h));
}

#define SAMPLE_BYTES(regs, stack) \
	(8 + 8 + 8 + 8 + 8 * (regs) + 8 + ((stack) == 0 ? 0 : (stack) + 8))

/* Thread 12 of process 11 at 1000 ns: register n has the value n, in the kernel's order. */
static void put_sample(uint16_t misc, uint64_t abi, uint64_t stack, uint64_t copied)
{
	const size_t n = abi == PERF_SAMPLE_REGS_ABI_NONE ? 0 : ARCH_REGS;

	put_header(PERF_RECORD_SAMPLE, misc, SAMPLE_BYTES(n, stack));
	put_two(11, 12);
	put_u64(1000);
	put_u64(abi);
	for (uint64_t i = 0; i < n; i++)
		put_u64(i);
	put_u64(stack);
	for (uint64_t i = 0; i < stack; i++)
		put(&(uint8_t){(uint8_t)(0x80 + i)}, 1);
	if (stack > 0)
		put_u64(copied);
}

static struct perf_record decoded(void)
{
	struct perf_record r;

	ck_assert_int_eq(perf_decode(&bytes, &r), 1);
	return r;
}

TEST(an_empty_ring_has_no_record)
{
	struct perf_record r;

	begin(40);
	OK(perf_decode(&bytes, &r));
}

/* At each position, so that each number and the stack lie across the end of the ring once. */
TESTS(a_sample_at_each_position, RING_BYTES / 8)
{
	uint8_t stack[STACK_BYTES];
	struct perf_record r;

	begin((uint64_t)_i * 8);
	put_sample(PERF_RECORD_MISC_USER, PERF_SAMPLE_REGS_ABI_64, STACK_BYTES, 40);
	r = decoded();
	ck_assert_int_eq(r.kind, PERF_KIND_SAMPLE);
	ck_assert_uint_eq(r.size, bytes.head - bytes.tail);
	ck_assert(r.pid == 11 && r.tid == 12 && r.time_ns == 1000);
	ck_assert(r.has_user && !r.in_kernel);
	ck_assert_uint_eq(r.stack_size, 40);
	perf_copy(&bytes, r.stack_at, stack, r.stack_size);
	for (size_t i = 0; i < r.stack_size; i++)
		ck_assert_uint_eq(stack[i], 0x80 + i);
}

/* The kernel writes the registers by the number of their bit: ax bx cx dx si di bp sp ip r8... */
TEST_IF(registers_are_in_the_order_of_dwarf, ARCH_PC == 16)
{
	static const uint64_t by_dwarf[] = {0,	3,  2,	1,  4,	5,  6,	7, 9,
					    10, 11, 12, 13, 14, 15, 16, 8};
	struct perf_record r;

	begin(0);
	put_sample(PERF_RECORD_MISC_USER, PERF_SAMPLE_REGS_ABI_64, STACK_BYTES, STACK_BYTES);
	r = decoded();
	for (size_t i = 0; i < ARCH_REGS; i++)
		ck_assert_uint_eq(r.regs[i], by_dwarf[i]);
	ck_assert_int_eq(__builtin_popcountll(perf_regs_mask()), ARCH_REGS);
}

TEST(a_thread_without_user_code)
{
	struct perf_record r;

	begin(0);
	put_sample(PERF_RECORD_MISC_KERNEL, PERF_SAMPLE_REGS_ABI_NONE, 0, 0);
	r = decoded();
	ck_assert(!r.has_user && r.in_kernel && r.stack_size == 0);
	ck_assert_uint_eq(r.size, bytes.head);
}

TEST(a_thread_of_32_bits)
{
	begin(0);
	put_sample(PERF_RECORD_MISC_USER, PERF_SAMPLE_REGS_ABI_32, STACK_BYTES, STACK_BYTES);
	ck_assert(!decoded().has_user);
}

/* Of an io_uring's thread of the kernel, before Linux 6.18. */
TEST(a_thread_whose_registers_are_0)
{
	begin(0);
	put_sample(PERF_RECORD_MISC_KERNEL, PERF_SAMPLE_REGS_ABI_64, STACK_BYTES, 0);
	memset(ring + 8 + 8 + 8 + 8, 0, 8 * ARCH_REGS);
	ck_assert(!decoded().has_user);
}

TEST(no_byte_of_the_stack_could_be_copied)
{
	begin(0);
	put_sample(PERF_RECORD_MISC_USER, PERF_SAMPLE_REGS_ABI_64, STACK_BYTES, 0);
	ck_assert_uint_eq(decoded().stack_size, 0);
}

TEST(more_copied_than_there_is)
{
	begin(0);
	put_sample(PERF_RECORD_MISC_USER, PERF_SAMPLE_REGS_ABI_64, STACK_BYTES, UINT64_MAX);
	ck_assert_uint_eq(decoded().stack_size, STACK_BYTES);
}

/* A recorded fact of Linux 5.10: -1 in the callee-saved registers of a sample in the kernel. */
TEST(registers_of_an_old_kernel)
{
	struct perf_record r = {.in_kernel = true};

	ck_assert_uint_eq(perf_regs_known(&r, false), ARCH_REGS_ALL);
	ck_assert_uint_eq(perf_regs_known(&r, true) & ARCH_CALLEE_SAVED,
			  ARCH_LINK_REGISTER ? ARCH_CALLEE_SAVED : 0);
	ck_assert(perf_regs_known(&r, true) & UINT64_C(1) << ARCH_SP);
	ck_assert(perf_regs_known(&r, true) & UINT64_C(1) << ARCH_PC);
	r.in_kernel = false;
	ck_assert_uint_eq(perf_regs_known(&r, true), ARCH_REGS_ALL);
}

/* pid, tid and time stand at the end of each record but a sample. */
static void put_end(uint64_t time_ns)
{
	put_two(1, 2);
	put_u64(time_ns);
}

static void put_task(uint32_t type)
{
	put_header(type, 0, 8 + 8 + 8 + 8 + 16);
	put_two(21, 20);
	put_two(23, 22);
	put_u64(500);
	put_end(501);
}

static void put_comm(uint16_t misc)
{
	put_header(PERF_RECORD_COMM, misc, 8 + 8 + 16 + 16);
	put_two(31, 32);
	put("sixteen bytes...", 16);
	put_end(502);
}

TEST(births_ends_and_names)
{
	struct perf_record r;

	begin(RING_BYTES - 16);
	put_task(PERF_RECORD_FORK);
	put_task(PERF_RECORD_EXIT);
	put_comm(0);
	put_comm(PERF_RECORD_MISC_COMM_EXEC);
	r = decoded();
	ck_assert(r.kind == PERF_KIND_FORK && r.pid == 21 && r.parent == 20 && r.tid == 23);
	ck_assert_uint_eq(r.time_ns, 501);
	bytes.tail += r.size;
	r = decoded();
	ck_assert(r.kind == PERF_KIND_EXIT && r.pid == 21 && r.tid == 23);
	bytes.tail += r.size;
	r = decoded();
	ck_assert(r.kind == PERF_KIND_NAME && r.pid == 31 && r.tid == 32 && r.time_ns == 502);
	bytes.tail += r.size;
	r = decoded();
	ck_assert(r.kind == PERF_KIND_EXEC && r.pid == 31 && r.tid == 32);
	bytes.tail += r.size;
	OK(perf_decode(&bytes, &r));
}

static void put_numbers(uint32_t type, size_t n)
{
	put_header(type, 0, 8 + 8 * n + 16);
	for (size_t i = 0; i < n; i++)
		put_u64(i);
	put_end(503);
}

TEST(losses_and_unknown_records)
{
	static const enum perf_kind kinds[] = {PERF_KIND_LOST, PERF_KIND_THROTTLED, PERF_KIND_OTHER,
					       PERF_KIND_OTHER};

	begin(0);
	put_numbers(PERF_RECORD_LOST, 2);
	put_numbers(PERF_RECORD_THROTTLE, 3);
	put_numbers(PERF_RECORD_UNTHROTTLE, 3);
	put_numbers(1000, 0);
	for (size_t i = 0; i < array_size(kinds); i++) {
		const struct perf_record r = decoded();

		ck_assert_int_eq(r.kind, kinds[i]);
		ck_assert_uint_eq(r.time_ns, 503);
		bytes.tail += r.size;
	}
	ck_assert_uint_eq(bytes.tail, bytes.head);
}

/* Sizes that are no record: shorter than a header, longer than what is there, or cut anywhere. */
TEST(impossible_sizes)
{
	struct perf_record r;

	for (size_t size = 0; size < SAMPLE_BYTES(ARCH_REGS, STACK_BYTES); size++) {
		begin(96);
		put_sample(PERF_RECORD_MISC_USER, PERF_SAMPLE_REGS_ABI_64, STACK_BYTES, 8);
		ring[96 + 6] = (uint8_t)size;
		ring[96 + 7] = (uint8_t)(size >> 8);
		ck_assert_int_eq(perf_decode(&bytes, &r), -EPROTO);
	}
	begin(0);
	put_header(PERF_RECORD_COMM, 0, 4096);
	ck_assert_int_eq(perf_decode(&bytes, &r), -EPROTO);
	begin(0);
	put("four", 4);
	ck_assert_int_eq(perf_decode(&bytes, &r), -EPROTO);
	begin(0);
	put_header(PERF_RECORD_EXIT, 0, 8);
	ck_assert_int_eq(perf_decode(&bytes, &r), -EPROTO);
}

/* The size of the stack is larger than the record. */
TEST(a_stack_that_is_too_long)
{
	struct perf_record r;

	begin(0);
	put_sample(PERF_RECORD_MISC_USER, PERF_SAMPLE_REGS_ABI_64, STACK_BYTES, 8);
	memset(ring + SAMPLE_BYTES(ARCH_REGS, STACK_BYTES) - STACK_BYTES - 16, 0xff, 8);
	ck_assert_int_eq(perf_decode(&bytes, &r), -EPROTO);
}

/* The result names no byte outside of the record, whatever the bytes are. */
static void try_random_bytes(void)
{
	struct perf_record r;
	uint8_t stack[RING_BYTES];

	for (size_t i = 0; i < sizeof(ring); i++)
		ring[i] = (uint8_t)random();
	begin((uint64_t)random());
	/* A likely type and size, or most inputs would be refused at once. */
	if (random() % 4 != 0)
		put_header((uint32_t)random() % 12, (uint16_t)random(), (size_t)random() % 512);
	bytes.head = bytes.tail + (uint64_t)random() % (sizeof(ring) + 1);
	if (perf_decode(&bytes, &r) != 1)
		return;
	ck_assert(r.size >= 8 && r.size <= bytes.head - bytes.tail);
	if (r.stack_size == 0)
		return;
	ck_assert(r.stack_at >= bytes.tail && r.stack_at + r.stack_size <= bytes.tail + r.size);
	perf_copy(&bytes, r.stack_at, stack, r.stack_size);
}

TEST(random_bytes)
{
	srandom(1);
	for (int i = 0; i < 20000; i++)
		try_random_bytes();
}
