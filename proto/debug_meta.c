#include "proto/debug_meta.h"

#include <errno.h>
#include <string.h>

static const char hex[] = "0123456789abcdef";

int debug_meta_id(const uint8_t *id, size_t size, char ret[DEBUG_META_ID_SIZE])
{
	/* time_low, time_mid and time_hi are little-endian; the other fields are bytes. */
	static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
	uint8_t bytes[16] = {0};
	char *p = ret;

	if (size == 0)
		return -EINVAL;
	memcpy(bytes, id, size < sizeof(bytes) ? size : sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		uint8_t byte = bytes[order[i]];

		if (i == 4 || i == 6 || i == 8 || i == 10)
			*p++ = '-';
		*p++ = hex[byte >> 4];
		*p++ = hex[byte & 15];
	}
	*p = '\0';
	return 0;
}

/* Writes the whole build-id in lower-case hexadecimal digits. */
static void write_code_id(const struct profile_image *image, struct json_out *o)
{
	json_out_raw(o, ",\"code_id\":\"");
	for (size_t i = 0; i < image->id_size; i++) {
		const char digits[] = {hex[image->id[i] >> 4], hex[image->id[i] & 15], '\0'};

		json_out_raw(o, digits);
	}
	json_out_raw(o, "\"");
}

static void write_image(const struct profile_image *image, bool for_file, struct json_out *o)
{
	char debug_id[DEBUG_META_ID_SIZE];

	if (debug_meta_id(image->id, image->id_size, debug_id) < 0) {
		o->error = -EINVAL;
		return;
	}
	/* Not "elf": the server rejects a chunk with that type. */
	json_out_raw(o, "{\"type\":\"symbolic\",\"code_file\":");
	json_out_string(o, image->code_file);
	json_out_raw(o, ",\"debug_id\":\"");
	json_out_raw(o, debug_id);
	json_out_raw(o, "\",\"image_addr\":");
	json_out_addr(o, image->addr);
	json_out_raw(o, ",\"image_vmaddr\":");
	json_out_addr(o, image->vmaddr);
	json_out_raw(o, ",\"image_size\":");
	json_out_u64(o, image->size);
	if (for_file && image->has_build_id)
		write_code_id(image, o);
	json_out_raw(o, "}");
}

void debug_meta_write(const struct profile_image *images, size_t n, bool for_file,
		      struct json_out *o)
{
	json_out_raw(o, "{\"images\":[");
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			json_out_raw(o, ",");
		write_image(&images[i], for_file, o);
	}
	json_out_raw(o, "]}");
}
