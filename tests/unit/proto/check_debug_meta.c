#include "proto/debug_meta.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/unit/proto/good_profile.h"
#include "tests/unit/suite.h"

TEST(a_debug_id_is_made_from_a_build_id)
{
	char id[DEBUG_META_ID_SIZE];

	OK(debug_meta_id(good_build_id, sizeof(good_build_id), id));
	ck_assert_str_eq(id, "32ffdf15-aa39-3b7c-16a7-1e6b2e3b6e40");
}

/* Linkers also make build-ids of 8 bytes (xxhash) and 16 bytes (md5, uuid). */
TEST(a_short_build_id_is_filled_up_with_zeros)
{
	char id[DEBUG_META_ID_SIZE];

	OK(debug_meta_id(good_text_id, 16, id));
	ck_assert_str_eq(id, "04030201-0605-0807-090a-0b0c0d0e0f10");
	OK(debug_meta_id(good_text_id, 8, id));
	ck_assert_str_eq(id, "04030201-0605-0807-0000-000000000000");
	OK(debug_meta_id(good_text_id, 1, id));
	ck_assert_str_eq(id, "00000001-0000-0000-0000-000000000000");
	ck_assert_int_eq(debug_meta_id(good_text_id, 0, id), -EINVAL);
}

static char *images_json(const struct profile_image *images, size_t n)
{
	struct json_out o;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(f);
	json_out_init(&o, f);
	debug_meta_write(images, n, false, &o);
	OK(json_out_finish(&o));
	OK(fclose(f));
	return text;
}

TEST(images_are_written_with_escapes)
{
	struct good_profile g;
	char *text;

	good_profile_init(&g);
	g.images[1].code_file = "/a \"b\"\\\n\xc3\xa4";
	text = images_json(g.images, 2);
	ck_assert_str_eq(text, "{\"images\":["
			       "{\"type\":\"symbolic\",\"code_file\":\"/opt/app/worker\","
			       "\"debug_id\":\"32ffdf15-aa39-3b7c-16a7-1e6b2e3b6e40\","
			       "\"image_addr\":\"0x555555554000\",\"image_vmaddr\":\"0x0\","
			       "\"image_size\":81920},"
			       "{\"type\":\"symbolic\","
			       "\"code_file\":\"/a \\\"b\\\"\\\\\\n\xc3\xa4\","
			       "\"debug_id\":\"04030201-0605-0807-090a-0b0c0d0e0f10\","
			       "\"image_addr\":\"0x7ffff7c00000\","
			       "\"image_vmaddr\":\"0x10000\",\"image_size\":2113536}]}");
	free(text);
	text = images_json(NULL, 0);
	ck_assert_str_eq(text, "{\"images\":[]}");
	free(text);
}
