#include "capture/edit_checks.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace tapline {

namespace {

template <class... Parts>
[[noreturn]] void invalid(const Parts&... parts) {
  throw_error(ErrorCode::kInvalidArgument, parts...);
}

}  // namespace

void check_point(const ResidualStream& stream, Point point) {
  const BlockPoints::Found& found = stream.points.at(point);
  if (!found.supported) throw Error(ErrorCode::kUnsupportedArchitecture, found.reason);
}

const Site& check_place(const ResidualStream& stream, Place place) {
  check_point(stream, place.point);
  const BlockPoints& points = stream.points;
  const Site& site = points.site(place);
  if (site.node >= 0) return site;
  throw_error(ErrorCode::kUnsupportedArchitecture, "Block ", place.layer, " has no ", name_of(place.point),
              ": it ", points.at(place.point).without[static_cast<size_t>(place.layer)], ".");
}

const Site& check_changeable(const ResidualStream& stream, Place place, const std::vector<int>& heads) {
  if (!place.is_vector())
    invalid("The point ", name_of(place.point), " does not have one vector per token and cannot be changed.");
  const Site& site = check_place(stream, place);
  for (const int head : heads) {
    if (head < 0 || (place.point == Point::kHeadOut && head < site.heads)) continue;
    invalid("Head ", head, " does not exist at ", place.text(/*first_word=*/false), ", which has ",
            site.heads > 0 ? std::to_string(site.heads) : "no heads", ".");
  }
  return site;
}

void check_edit(const ResidualStream& stream, const Edit& edit) {
  const Site& site = check_changeable(stream, edit.place(), edit.heads);
  for (const int head : edit.heads) {
    if (std::count(edit.heads.begin(), edit.heads.end(), head) > 1)
      invalid("An edit lists head ", head, " twice.");
  }
  if (edit.gauge_at) {
    const Place read{edit.layer, *edit.gauge_at};
    const bool fits = read.is_vector() && edit.heads.empty() && check_place(stream, read).node < site.node &&
                      read.computed_at() == read;
    if (!fits)
      invalid("A feature at ", read.text(/*first_word=*/false), " cannot change ",
              edit.place().text(/*first_word=*/false), ".");
  }
  check_vector(edit, edit.width_of(static_cast<size_t>(site.width), site.heads));
}

}  // namespace tapline
