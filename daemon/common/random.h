/*
 * Random numbers and ids from the kernel (getrandom(2)): hash seeds, jitter of
 * retries, and the ids that Sentry wants.
 *
 * No function returns an error. getrandom(2) waits only until the kernel has gathered
 * entropy after boot, and returns up to 256 bytes in one piece. The call fails only if a seccomp
 * filter refuses it: then random_bytes() sets all bits, and random_id() aborts.
 */
#ifndef DAEMON_COMMON_RANDOM_H
#define DAEMON_COMMON_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/msg/msg.h"

/* Writes n random bytes to ret. n is at most 256. If getrandom(2) fails, all bits are set. */
void random_bytes(void *ret, size_t n);

/* Returns 64 random bits. */
uint64_t random_number(void);

/*
 * Returns a number from 0 to n - 1; n must not be 0. The number is the remainder of a division of
 * 64 random bits by n, so small numbers are more probable; for n far below 2^64 the difference is
 * negligible.
 */
uint64_t random_below(uint64_t n);

/*
 * Writes an id as Sentry wants it: a UUID of version 4, as 32 lower-case hex digits and a
 * NUL. Aborts if getrandom(2) fails, since two equal ids would mix profiles.
 */
void random_id(char ret[MSG_ID_SIZE]);

/*
 * Returns true if text is 32 lower-case hex digits and a NUL. Reads MSG_ID_SIZE bytes at most, so
 * text can be foreign bytes without a NUL.
 */
bool random_id_is_valid(const char text[MSG_ID_SIZE]);

#endif
