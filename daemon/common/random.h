/*
 * Random numbers and ids from the kernel (getrandom(2)): hash seeds, jitter of
 * retries, and the ids that Sentry wants.
 *
 * No function here fails. getrandom(2) waits only until the kernel has gathered
 * entropy after boot, and returns up to 256 bytes in one piece.
 */
#ifndef DAEMON_COMMON_RANDOM_H
#define DAEMON_COMMON_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/msg/sizes.h"

/* Fills n bytes, at most 256. If the kernel gives none, all bits are set. */
void random_bytes(void *ret, size_t n);

/* Returns 64 random bits. */
uint64_t random_number(void);

/*
 * Returns a number below n, which is above 0. Meant for n far below 2^64: the remainder is not
 * even.
 */
uint64_t random_below(uint64_t n);

/*
 * Writes an id as Sentry wants it: a UUID of version 4, as 32 lower-case hex digits and a
 * NUL. Aborts if the kernel gives no random bytes, since two equal ids would mix profiles.
 */
void random_id(char ret[MSG_ID_SIZE]);

/* Returns true if text is 32 lower-case hex digits and a NUL. Reads no further. */
bool random_id_is_valid(const char text[MSG_ID_SIZE]);

#endif
