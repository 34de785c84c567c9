#include "proto/profile.h"

#include <string.h>

#include "lib/base/utf8.h"

bool profile_is_utf8(const char *s)
{
	while (*s != '\0') {
		size_t n = utf8_length(s);

		if (n == 0)
			return false;
		s += n;
	}
	return true;
}

uint32_t profile_find_thread(const struct profile *p, uint32_t tid)
{
	size_t low = 0, high = p->n_threads;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->threads[mid].tid == tid)
			return (uint32_t)mid;
		if (p->threads[mid].tid < tid)
			low = mid + 1;
		else
			high = mid;
	}
	return PROFILE_NONE;
}

/*
 * Returns whether a thread has two samples with a stack. With more samples than threads that is
 * certain, so the quadratic search runs only for few samples.
 */
static bool has_two_samples(const struct profile *p)
{
	size_t with_stack = 0;

	for (size_t i = 0; i < p->n_samples; i++)
		with_stack += p->samples[i].node != PROFILE_NONE;
	if (with_stack > p->n_threads)
		return true;
	for (size_t i = 0; i < p->n_samples; i++) {
		if (p->samples[i].node == PROFILE_NONE)
			continue;
		for (size_t j = i + 1; j < p->n_samples; j++)
			if (p->samples[j].tid == p->samples[i].tid &&
			    p->samples[j].node != PROFILE_NONE)
				return true;
	}
	return false;
}

static bool is_hex_id(const char id[PROFILE_ID_SIZE])
{
	return strnlen(id, PROFILE_ID_SIZE) == PROFILE_ID_SIZE - 1 &&
	       strspn(id, "0123456789abcdef") == PROFILE_ID_SIZE - 1;
}

static bool ids_good(const struct profile *p)
{
	for (size_t i = 0; i < p->n_images; i++)
		if (p->images[i].id == NULL || p->images[i].id_size == 0)
			return false;
	return is_hex_id(p->profiler_id) && is_hex_id(p->chunk_id);
}

static bool metadata_given(const struct profile *p)
{
	const char *texts[] = {p->platform, p->release, p->environment, p->sdk_name,
			       p->sdk_version};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i] == NULL || texts[i][0] == '\0')
			return false;
	return true;
}

/* Looks at all samples: their order has not been checked yet. */
static bool duration_good(const struct profile *p)
{
	uint64_t oldest = UINT64_MAX, newest = 0;

	for (size_t i = 0; i < p->n_samples; i++) {
		uint64_t time = p->samples[i].time_us;

		oldest = time < oldest ? time : oldest;
		newest = time > newest ? time : newest;
	}
	return newest - oldest <= PROFILE_DURATION_MAX_US;
}

static bool indices_good(const struct profile *p)
{
	/* PROFILE_NONE must not be a valid index. */
	if (p->n_nodes >= PROFILE_NONE || p->n_frames >= PROFILE_NONE ||
	    p->n_threads >= PROFILE_NONE)
		return false;
	for (size_t i = 0; i < p->n_nodes; i++) {
		const struct profile_node *node = &p->nodes[i];

		if (node->frame >= p->n_frames ||
		    (node->parent != PROFILE_NONE && node->parent >= i))
			return false;
	}
	for (size_t i = 0; i < p->n_samples; i++)
		if (p->samples[i].node != PROFILE_NONE && p->samples[i].node >= p->n_nodes)
			return false;
	for (size_t i = 0; p->lines != NULL && i < p->n_frames; i++)
		if ((uint64_t)p->lines[i].first + p->lines[i].n > p->n_inlined)
			return false;
	return true;
}

static bool frame_texts_good(const struct profile_frame *f)
{
	return (f->function == NULL || profile_is_utf8(f->function)) &&
	       (f->package == NULL || profile_is_utf8(f->package)) &&
	       (f->file == NULL || profile_is_utf8(f->file));
}

static bool texts_good(const struct profile *p)
{
	if (!profile_is_utf8(p->platform) || !profile_is_utf8(p->release) ||
	    !profile_is_utf8(p->environment) || !profile_is_utf8(p->sdk_name) ||
	    !profile_is_utf8(p->sdk_version))
		return false;
	for (size_t i = 0; i < p->n_images; i++)
		if (!profile_is_utf8(p->images[i].code_file))
			return false;
	for (size_t i = 0; i < p->n_threads; i++)
		if (!profile_is_utf8(p->threads[i].name))
			return false;
	for (size_t i = 0; i < p->n_frames; i++)
		if (!frame_texts_good(&p->frames[i]) ||
		    (p->lines != NULL && p->lines[i].file != NULL &&
		     !profile_is_utf8(p->lines[i].file)))
			return false;
	for (size_t i = 0; i < p->n_inlined; i++)
		if (!frame_texts_good(&p->inlined[i]))
			return false;
	return true;
}

static bool addresses_given(const struct profile *p)
{
	for (size_t i = 0; i < p->n_frames; i++)
		if (p->frames[i].addr == 0)
			return false;
	return true;
}

static bool order_good(const struct profile *p)
{
	for (size_t i = 1; i < p->n_threads; i++)
		if (p->threads[i].tid <= p->threads[i - 1].tid)
			return false;
	for (size_t i = 1; i < p->n_samples; i++) {
		const struct profile_sample *a = &p->samples[i - 1];
		const struct profile_sample *b = &p->samples[i];

		if (b->time_us < a->time_us || (b->time_us == a->time_us && b->tid <= a->tid))
			return false;
	}
	return true;
}

static bool root_callees_named(const struct profile *p)
{
	for (size_t i = 0; i < p->n_nodes; i++) {
		uint32_t parent = p->nodes[i].parent;
		const char *function = p->frames[p->nodes[i].frame].function;

		if (parent == PROFILE_NONE || p->nodes[parent].parent != PROFILE_NONE)
			continue;
		if (function == NULL || function[0] == '\0')
			return false;
	}
	return true;
}

static bool images_apart(const struct profile *p)
{
	for (size_t i = 0; i < p->n_images; i++) {
		const struct profile_image *image = &p->images[i];

		if (image->size > UINT64_MAX - image->addr)
			return false;
		if (i + 1 < p->n_images &&
		    (image[1].addr <= image->addr || image[1].addr - image->addr < image->size))
			return false;
	}
	return true;
}

static bool threads_known(const struct profile *p)
{
	for (size_t i = 0; i < p->n_samples; i++)
		if (profile_find_thread(p, p->samples[i].tid) == PROFILE_NONE)
			return false;
	return true;
}

/* In the order of enum profile_fault; each check may rely on those before it. */
enum profile_fault profile_check(const struct profile *p)
{
	if (!has_two_samples(p))
		return PROFILE_NO_SAMPLES;
	if (!ids_good(p))
		return PROFILE_BAD_ID;
	if (!metadata_given(p))
		return PROFILE_MISSING_METADATA;
	if (!duration_good(p))
		return PROFILE_TOO_LONG;
	if (!indices_good(p))
		return PROFILE_BAD_INDEX;
	if (!texts_good(p))
		return PROFILE_BAD_TEXT;
	if (!addresses_given(p))
		return PROFILE_NO_ADDRESS;
	if (!order_good(p))
		return PROFILE_BAD_ORDER;
	if (!root_callees_named(p))
		return PROFILE_ROOT_CALLEE_WITHOUT_NAME;
	if (!images_apart(p))
		return PROFILE_IMAGES_OVERLAP;
	if (!threads_known(p))
		return PROFILE_UNKNOWN_THREAD;
	return PROFILE_OK;
}

const char *profile_state_name(enum profile_state state)
{
	static const char *const names[PROFILE_STATES] = {
		[PROFILE_RUNNING] = "running",
		[PROFILE_READY] = "ready",
		[PROFILE_WAITING] = "waiting",
	};

	return names[state];
}

const char *profile_fault_name(enum profile_fault fault)
{
	static const char *const names[PROFILE_FAULT_N] = {
		[PROFILE_OK] = "ok",
		[PROFILE_NO_SAMPLES] = "not_enough_samples",
		[PROFILE_BAD_ID] = "bad_id",
		[PROFILE_MISSING_METADATA] = "missing_metadata",
		[PROFILE_TOO_LONG] = "duration_too_long",
		[PROFILE_BAD_INDEX] = "bad_index",
		[PROFILE_BAD_TEXT] = "bad_text",
		[PROFILE_NO_ADDRESS] = "frame_without_address",
		[PROFILE_BAD_ORDER] = "bad_order",
		[PROFILE_ROOT_CALLEE_WITHOUT_NAME] = "root_without_name",
		[PROFILE_IMAGES_OVERLAP] = "images_overlap",
		[PROFILE_UNKNOWN_THREAD] = "unknown_thread",
	};

	return fault < PROFILE_FAULT_N ? names[fault] : "unknown";
}
