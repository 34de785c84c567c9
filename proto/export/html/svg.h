/*
 * The format "svg": a flame graph as one SVG file, with its script for zoom and search, and without
 * links, as flamegraph.pl draws it.
 *
 * Source: Brendan Gregg's FlameGraph, flamegraph.pl.
 */
#ifndef PROTO_EXPORT_HTML_SVG_H
#define PROTO_EXPORT_HTML_SVG_H

#include <stdio.h>

#include "proto/export/export.h"

/*
 * Writes the picture. Widths are running time; if the merge has no running time, all time.
 * Rectangles narrower than a tenth of a pixel are left out. Returns 0, -ENOMEM, or the error of the
 * stream
 * (-EIO if errno is not set).
 * m was made with by_function and without is_ordered (struct merge_options).
 */
must_check int export_svg(const struct merge *m, const struct export_options *o, FILE *out);

#endif
