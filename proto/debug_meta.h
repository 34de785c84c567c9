/*
 * Writes debug_meta: the list of images that a profile's addresses lie in, which the server needs
 * for symbolication. Both sample formats have it.
 *
 * Source: Sentry's "Debug Meta Interface" and, for the identity of ELF files, "Debug Information
 * Files"; docs/FORMATS.md says where the server differs.
 */
#ifndef PROTO_DEBUG_META_H
#define PROTO_DEBUG_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/json_out.h"
#include "proto/profile.h"

/* Size of a UUID with dashes, with the NUL. */
#define DEBUG_META_ID_SIZE 37

/*
 * Makes the debug_id of an ELF file from its build-id, the size bytes at id. The debug_id is a UUID
 * in lower case, made from the first 16 bytes (a shorter build-id is filled up with zeros). The
 * bytes of the first three fields of the UUID are in reverse order:
 *     00112233445566778899aabbccddeeff  ->  33221100-5544-7766-8899-aabbccddeeff
 * Returns 0, or -EINVAL if size is 0: ret is then unchanged.
 */
int debug_meta_id(const uint8_t *id, size_t size, char ret[DEBUG_META_ID_SIZE]);

/*
 * Writes {"images":[...]}. Every image must have an id, as profile_check() ensures. for_file: the
 * payload is for a file, where each image with a build-id also has the build-id as "code_id"; the
 * server would drop that member. An error is stored in o, and json_out_finish() returns it.
 */
void debug_meta_write(const struct profile_image *images, size_t n, bool for_file,
		      struct json_out *o);

#endif
