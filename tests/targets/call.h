/*
 * A system call as a row of a table. An argument is a number or an address, or
 * says where in the thread's structure it stands.
 */
#ifndef TESTS_TARGETS_CALL_H
#define TESTS_TARGETS_CALL_H

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

/* As syscall(2): -1 and errno if it fails. */
static inline long call_make(const struct call *call, void *thread)
{
	long a[6];

	for (int i = 0; i < 6; i++)
		a[i] = call_argument(call->arguments[i], thread);
	return syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

#endif
