#include "moved_text.h"
