/*
 * debug_meta: the images that a profile's addresses lie in, as Sentry wants
 * them for symbolication.
 * Source: Sentry's "Debug Meta Interface" and, for the identity of ELF files,
 * "Debug Information Files"; docs/FORMATS.md says where the server differs.
 */
#ifndef PROTO_DEBUG_META_H
#define PROTO_DEBUG_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/json_out.h"
#include "proto/profile.h"

/* A UUID with dashes, NUL-terminated. */
#define DEBUG_META_ID_SIZE 37

/*
 * The debug_id of an ELF file: the first 16 bytes of its build-id (filled up
 * with zeros), its first three fields in the byte order of a little-endian
 * GUID, lower case. Returns 0, or -EINVAL if size is 0.
 */
int debug_meta_id(const uint8_t *id, size_t size, char ret[DEBUG_META_ID_SIZE]);

/*
 * Writes {"images":[...]}. Images must have an id (profile_check). for_file:
 * those with a build-id have it as code_id, which the server would drop. Errors
 * stay in o.
 */
void debug_meta_write(const struct profile_image *images, size_t n, bool for_file,
		      struct json_out *o);

#endif
