/*
 * The format "svg": a flame graph like that of flamegraph.pl, as one SVG file. The file has the
 * script for zoom and search in it, and refers to no other file.
 *
 * Source: Brendan Gregg's FlameGraph, flamegraph.pl.
 */
#ifndef PROTO_EXPORT_HTML_SVG_H
#define PROTO_EXPORT_HTML_SVG_H

#include <stdio.h>

#include "proto/export/export.h"

/*
 * Writes the picture to out and flushes it. The width of a function is its running time or, if no
 * thread ran in the merge, all its time. Rectangles narrower than a tenth of a pixel are left out.
 * Returns 0, -ENOMEM, or the error of the stream (-EIO if errno is not set).
 * Merge: by function, not ordered (export.h).
 */
must_check int export_svg(const struct merge *m, const struct export_options *o, FILE *out);

#endif
