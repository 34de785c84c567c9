/*
 * A system call as a row of a table. An argument is a number or an address, or
 * says where in the thread's structure it stands.
 */
#ifndef TESTS_TARGETS_CALL_H
#define TESTS_TARGETS_CALL_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

struct call {
	long number, arguments[6];
};

/* In the upper 16 bits, where numbers and addresses have none or all. */
enum call_argument { CALL_AT = 1, CALL_INT, CALL_LONG };

/* The address of a field, and the int or the long that the field holds. */
#define CALL_FIELD(what, type, field) \
	((long)(what) << 48 | (long)offsetof(type, field))

static inline long call_argument(long argument, char *thread)
{
	char *field = thread + (uint32_t)argument;

	switch (argument >> 48) {
	case CALL_AT:
		return (long)field;
	case CALL_INT:
		return *(int *)(void *)field;
	case CALL_LONG:
		return *(long *)(void *)field;
	default:
		return argument;
	}
}

/*
 * As syscall(2): -1 and errno if it fails. aarch64: copies the first argument from a register that
 * the call leaves unchanged, as glibc's functions for calls that wait do.
 */
static inline long call_kernel(long number, const long a[6])
{
#if defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x19 __asm__("x19") = a[0];
	register long x0 __asm__("x0");
	register long x1 __asm__("x1") = a[1];
	register long x2 __asm__("x2") = a[2];
	register long x3 __asm__("x3") = a[3];
	register long x4 __asm__("x4") = a[4];
	register long x5 __asm__("x5") = a[5];

	__asm__ volatile("mov x0, x19\n\tsvc #0"
			 : "=&r"(x0)
			 : "r"(x8), "r"(x19), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	if (x0 < 0 && x0 >= -4095) {
		errno = (int)-x0;
		return -1;
	}
	return x0;
#else
	return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
#endif
}

static inline long call_make(const struct call *call, void *thread)
{
	long a[6];

	for (int i = 0; i < 6; i++)
		a[i] = call_argument(call->arguments[i], thread);
	return call_kernel(call->number, a);
}

#endif
