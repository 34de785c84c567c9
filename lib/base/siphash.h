/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012): a 64-bit hash with a secret key. An attacker without
 * the key can neither predict a hash nor find messages that collide. It is for data that a target
 * chose.
 */
#ifndef LIB_BASE_SIPHASH_H
#define LIB_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define SIPHASH_KEY_SIZE 16

/* Returns the hash of n bytes. It does not depend on the machine's byte order. */
uint64_t siphash(const uint8_t key[SIPHASH_KEY_SIZE], const void *data, size_t n);

#endif
