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
 * Writes the picture to out and flushes out. The width of a rectangle is the running time of the
 * function and of those that it called. If m has no running time at all, the width is the time for
 * which threads were ready or waiting in these functions. Rectangles narrower than a tenth of a
 * pixel are left out. Returns 0, -ENOMEM, or the negative errno of writing (-EIO if errno is not
 * set).
 * Merge: by function, not ordered (the options with which m has to be made; see export.h).
 */
must_check int export_svg(const struct merge *m, const struct export_options *o, FILE *out);

#endif
