/*
 * A valid profile, which tests write or change: two images; five frames, four of them in samples;
 * three stacks and the empty one; two threads with samples and one without.
 */
#ifndef TESTS_UNIT_PROTO_GOOD_PROFILE_H
#define TESTS_UNIT_PROTO_GOOD_PROFILE_H

#include <string.h>

#include "proto/profile.h"

struct good_profile {
	struct profile p;
	struct profile_image images[2];
	struct profile_frame frames[5];
	struct profile_node nodes[6];
	struct profile_sample samples[8];
	struct profile_thread threads[3];
	struct profile_measurement measurements[2];
};

static const uint8_t good_build_id[20] = {
	0x15, 0xdf, 0xff, 0x32, 0x39, 0xaa, 0x7c, 0x3b, 0x16, 0xa7,
	0x1e, 0x6b, 0x2e, 0x3b, 0x6e, 0x40, 0xaa, 0xbb, 0xcc, 0xdd,
};
static const uint8_t good_text_id[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static inline void good_profile_init(struct good_profile *g)
{
	const char *app = "/opt/app/worker", *libc = "/usr/lib/libc.so.6";

	memset(g, 0, sizeof(*g));
	g->images[0] = (struct profile_image){
		.code_file = app,
		.id = good_build_id,
		.id_size = sizeof(good_build_id),
		.has_build_id = true,
		.addr = 0x555555554000,
		.vmaddr = 0x0,
		.size = 81920,
	};
	g->images[1] = (struct profile_image){
		.code_file = libc,
		.id = good_text_id,
		.id_size = sizeof(good_text_id),
		.addr = 0x7ffff7c00000,
		.vmaddr = 0x10000,
		.size = 2113536,
	};
	g->frames[0] =
		(struct profile_frame){0x555555555080, "main", app, 1, "/build/src/main.c", 42};
	g->frames[1] =
		(struct profile_frame){0x7ffff7c2724a, "libc.so.6+0x2724a", libc, 0, NULL, 0};
	/* No sample uses it. */
	g->frames[2] = (struct profile_frame){0x555555555999, "idle", app, 1, NULL, 0};
	g->frames[3] = (struct profile_frame){0x5555555551c3, NULL, app, 1, "x.c", 0};
	g->frames[4] = (struct profile_frame){0x7fff00001000, "x", NULL, 0, NULL, 0};
	/* The roots are nodes 0 (libc) and 5 (frame 4). libc calls main, main calls idle and frame
	 * 3, and frame 3 calls frame 4. */
	g->nodes[0] = (struct profile_node){PROFILE_NONE, 1};
	g->nodes[1] = (struct profile_node){0, 0};
	g->nodes[2] = (struct profile_node){1, 2};
	g->nodes[3] = (struct profile_node){1, 3};
	g->nodes[4] = (struct profile_node){3, 4};
	g->nodes[5] = (struct profile_node){PROFILE_NONE, 4};
#define T UINT64_C(1724777211000000)
	g->samples[0] = (struct profile_sample){T, 100, 4, PROFILE_RUNNING, false};
	g->samples[1] = (struct profile_sample){T, 101, 1, PROFILE_WAITING, false};
	g->samples[2] = (struct profile_sample){T + 9901, 100, 4, PROFILE_RUNNING, false};
	g->samples[3] = (struct profile_sample){T + 19802, 100, 3, PROFILE_RUNNING, false};
	g->samples[4] = (struct profile_sample){T + 19802, 101, PROFILE_NONE, 0, false};
	g->samples[5] = (struct profile_sample){T + 29703, 101, 1, PROFILE_READY, false};
	g->samples[6] = (struct profile_sample){T + 1000000, 100, 3, PROFILE_RUNNING, false};
	g->samples[7] = (struct profile_sample){T + 1000000, 101, 1, PROFILE_WAITING, false};
	g->measurements[0] = (struct profile_measurement){T + 1234, 99012345, 4096, 0};
	g->measurements[1] = (struct profile_measurement){T + 1000000, 0, 1 << 20, 4096};
#undef T
	g->threads[0] = (struct profile_thread){99, "unused", 0};
	g->threads[1] = (struct profile_thread){100, "main", 0};
	g->threads[2] = (struct profile_thread){101, "", 0};
	g->p = (struct profile){
		.profiler_id = "71bba98d90b545c39f2ae73f702d7ef4",
		.chunk_id = "3e11a5c9831f4e49939c0a81944ea2cb",
		.platform = "rust",
		.release = "worker@1.2.3",
		.environment = "production",
		.sdk_name = "sentry.native.profd",
		.sdk_version = "0.1.0",
		.images = g->images,
		.n_images = 2,
		.frames = g->frames,
		.n_frames = 5,
		.nodes = g->nodes,
		.n_nodes = 6,
		.samples = g->samples,
		.n_samples = 8,
		.threads = g->threads,
		.n_threads = 3,
		.measurements = g->measurements,
		.n_measurements = 2,
	};
}

#endif
