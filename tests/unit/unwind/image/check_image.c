/* Tests of an image's place in memory: with pages of 4 KiB, and of 64 KiB as on aarch64. */
#include "lib/unwind/image/image.h"

#include "tests/unit/suite.h"

#define BIAS UINT64_C(0x7f1200000000)

/* As lld writes it for pages of up to 64 KiB: headers, text, data. */
static struct image_segment segments[] = {
	{.offset = 0, .vaddr = 0, .file_size = 0x6680},
	{.offset = 0x6680, .vaddr = 0x16680, .file_size = 0x19000, .exec = true},
	{.offset = 0x1f680, .vaddr = 0x3f680, .file_size = 0x800},
};

static struct image image = {
	.is_elf = true,
	.segments = segments,
	.n_segments = array_size(segments),
};

static const struct {
	uint64_t page;
	uint64_t text, text_end, text_offset, data, data_offset;
} pages[] = {
	{0x1000, 0x16000, 0x30000, 0x6000, 0x3f000, 0x1f000},
	{0x4000, 0x14000, 0x30000, 0x4000, 0x3c000, 0x1c000},
	{0x10000, 0x10000, 0x30000, 0, 0x30000, 0x10000},
};

TESTS(a_mapping_begins_with_the_page_of_its_segment, array_size(pages))
{
	uint64_t bias = 0;

	image.page_size = pages[_i].page;
	ck_assert(image_bias(&image, BIAS + pages[_i].text, pages[_i].text_offset, true, &bias));
	ck_assert_uint_eq(bias, BIAS);
	bias = 0;
	ck_assert(image_bias(&image, BIAS + pages[_i].data, pages[_i].data_offset, false, &bias));
	ck_assert_uint_eq(bias, BIAS);
}

TEST(a_mapping_may_begin_with_a_later_page)
{
	uint64_t bias = 0;

	image.page_size = 0x1000;
	ck_assert(image_bias(&image, BIAS + 0x20000, 0x10000, true, &bias));
	ck_assert_uint_eq(bias, BIAS);
	ck_assert(!image_bias(&image, BIAS + 0x15000, 0x5000, true, &bias));
	ck_assert(!image_bias(&image, BIAS + 0x30000, 0x20000, true, &bias));
}

TESTS(text_in_other_memory_has_whole_pages, array_size(pages))
{
	const uint64_t start = BIAS + pages[_i].text, end = BIAS + pages[_i].text_end;
	const uint64_t page = pages[_i].page;

	image.page_size = page;
	ck_assert(image_has_code(&image, BIAS, start, end));
	ck_assert(!image_has_code(&image, BIAS, start - page, end));
	ck_assert(!image_has_code(&image, BIAS, start, end + page));
	ck_assert(!image_has_code(&image, BIAS + page, start, end));
}
