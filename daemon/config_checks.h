#pragma once

// The last steps of a load, when every field has been read. Pure functions; what is wrong goes into
// the Diagnostics, at the field's own place.

#include "daemon/config.h"
#include "daemon/diagnostics.h"

namespace weir {

// Fills in what a field's default takes from other fields: a rule's upstream.
void resolve_defaults(Config& config, const Diagnostics& diagnostics);

// What one field allows depending on others.
void check_config(const Config& config, Diagnostics& diagnostics);

}  // namespace weir
