#pragma once

// Why a request is not served as its head stands, whatever the rules say. Pure.

#include <optional>

#include "proxy/http/framing.h"
#include "proxy/http/head.h"
#include "proxy/http/local_reply.h"

namespace weir::http {

// Of a head that could not be read; nothing: it could, or is not all there yet.
std::optional<LocalReply> refusal_of(const HeadReader::Result& result, const Limits& limits);
// What a head that could be read must still not say; nullptr: it is sound.
const char* fault_of(const Head& request, const Framing& framing);
// Of a sound one that asks for what we do not do.
std::optional<LocalReply> refusal_of(const Head& request);

}  // namespace weir::http
