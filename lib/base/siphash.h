/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012): a short hash of a short message
 * under a secret key. Who does not know the key can neither foresee a result
 * nor look for messages that collide.
 */
#ifndef LIB_BASE_SIPHASH_H
#define LIB_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_KEY_SIZE 16

/* The same on every machine: bytes are taken in little-endian order. */
uint64_t siphash(const uint8_t key[SIPHASH_KEY_SIZE], const void *data, size_t n);

#endif
