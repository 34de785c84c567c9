#include "proto/export/merge_extra.h"

#include <stdlib.h>

#include "tests/unit/suite.h"

static json_t *extra;

static void add(const char *text)
{
	json_t *payload = json_loads(text, 0, NULL);

	ck_assert_ptr_nonnull(payload);
	OK(merge_extra_add(&extra, payload));
	json_decref(payload);
}

static void check(const char *wanted)
{
	char *text = json_dumps(extra, JSON_COMPACT);

	ck_assert_str_eq(text, wanted);
	free(text);
	json_decref(extra);
	extra = NULL;
}

#define CURVE(name, points) \
	"{\"measurements\":{\"" name "\":{\"unit\":\"byte\",\"values\":[" points "]}}}"
#define POINT(time) "{\"timestamp\":" time "}"

TEST(members_of_the_first_chunk_are_kept)
{
	add("{\"a\":1,\"profile\":{},\"debug_meta\":{},\"chunk_id\":\"x\"}");
	add("{\"a\":2,\"b\":3,\"chunk_id\":\"y\"}");
	check("{\"a\":1,\"chunk_id\":\"x\"}");
}

TEST(ready_is_known_only_if_all_chunks_know_it)
{
	add("{\"ready_known\":true}");
	add("{\"ready_known\":true}");
	check("{\"ready_known\":true}");
	add("{\"ready_known\":true}");
	add("{}");
	check("{}");
	add("{}");
	add("{\"ready_known\":true}");
	check("{}");
}

TEST(samples_are_joined_if_those_of_some_chunk_are)
{
	add("{}");
	add("{\"joined_samples\":true}");
	add("{}");
	check("{\"joined_samples\":true}");
}

TEST(points_of_a_curve_are_sorted_by_time)
{
	add(CURVE("m", POINT("5") "," POINT("6")));
	add(CURVE("m", POINT("1") "," POINT("5.5")));
	add(CURVE("m", POINT("7")));
	check(CURVE("m", POINT("1") "," POINT("5") "," POINT("5.5") "," POINT("6") "," POINT("7")));
}

TEST(points_that_parts_have_in_common_stay_once)
{
	add(CURVE("m", POINT("5") "," POINT("6")));
	add(CURVE("m", POINT("5") "," POINT("6") "," POINT("7")));
	check(CURVE("m", POINT("5") "," POINT("6") "," POINT("7")));
}

TEST(curves_of_later_chunks_are_added)
{
	add("{}");
	add(CURVE("m", POINT("1")));
	add(CURVE("n", POINT("2")));
	check("{\"measurements\":{\"m\":{\"unit\":\"byte\",\"values\":["
	      "{\"timestamp\":1}]},\"n\":{\"unit\":\"byte\",\"values\":["
	      "{\"timestamp\":2}]}}}");
}

TEST(malformed_curves_stay_and_are_not_extended)
{
	add("{\"measurements\":{\"m\":3,\"n\":{\"values\":{}}}}");
	add(CURVE("m", "1,\"x\",null"));
	add("{\"measurements\":[]}");
	add(CURVE("n", POINT("1")));
	check("{\"measurements\":{\"m\":3,\"n\":{\"values\":{}}}}");
}
