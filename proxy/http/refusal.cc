#include "proxy/http/refusal.h"

#include <algorithm>
#include <string>

#include "proxy/path.h"

namespace weir::http {

std::optional<LocalReply> refusal_of(const HeadReader::Result& result, const Limits& limits) {
  switch (result.state) {
    case HeadReader::State::malformed:
      return LocalReply{Denial::malformed, result.fault};
    case HeadReader::State::target_too_long:
      return LocalReply{Denial::target_too_long,
                        "at most " + std::to_string(limits.target_bytes) + " bytes are taken"};
    case HeadReader::State::too_large:
      return LocalReply{Denial::header_too_large,
                        "at most " + std::to_string(limits.header_bytes) + " bytes in " +
                            std::to_string(limits.header_fields) + " fields are taken"};
    case HeadReader::State::more:
    case HeadReader::State::done:
      break;
  }
  return std::nullopt;
}

const char* fault_of(const Head& request, const Framing& framing) {
  const std::size_t hosts = request.count(Known::host);
  if (hosts > 1) return "more than one Host";
  if (hosts == 0 && request.minor_version == 1) return "no Host";
  if (hosts == 1 && !valid_authority(request.find(Known::host)->value)) {
    return "a Host that is none";
  }
  // Many servers take it for the `-` of another field, of one that we set, say.
  const bool two_names = std::ranges::any_of(request.fields, [](const Field& field) {
    return field.known == Known::other && field.name.find('_') != std::string_view::npos;
  });
  if (two_names) return "an underscore in a field's name";
  return framing.fault;
}

std::optional<LocalReply> refusal_of(const Head& request) {
  if (request.method == "CONNECT") {
    return LocalReply{Denial::connect_method, "this is no forward proxy"};
  }
  const bool other = std::ranges::any_of(request.fields, [](const Field& field) {
    return field.known == Known::expect && !equal_ignoring_case(field.value, "100-continue");
  });
  if (other) return LocalReply{Denial::unknown_expectation, "only 100-continue is known"};
  return std::nullopt;
}

}  // namespace weir::http
