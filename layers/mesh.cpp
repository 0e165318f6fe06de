#include "layers/mesh.h"

#include <fmt/format.h>

namespace sluice {
namespace {

// An empty communicator stands for a group of one.
Result<Communicator> group(Communicator& world, int ranks, int color, int key, Lane lane, std::string name) {
  if (ranks == 1) return Communicator();
  return world.split(color, key, {.lane = std::move(lane), .name = std::move(name), .deadline = {}});
}

}  // namespace

Status check_mesh(MeshShape shape, int ranks) {
  if (shape.dp < 1 || shape.ep < 1)
    return {Code::invalid_argument, fmt::format("mesh: dp {} and ep {} must be at least 1", shape.dp, shape.ep)};
  if (shape.dp != ranks)
    return {Code::invalid_argument,
            fmt::format("mesh: dp {} does not make the world of {} ranks (world = dp): use dp {} or start {} ranks",
                        shape.dp, ranks, ranks, shape.dp)};
  if (shape.dp % shape.ep != 0)
    return {Code::invalid_argument,
            fmt::format("mesh: ep {} must divide dp {} (experts are carved from dp)", shape.ep, shape.dp)};
  return {};
}

Result<Mesh> Mesh::create(Communicator world, MeshShape shape) {
  SLUICE_TRY(check_mesh(shape, ranks_of(world)));
  const Lane bulk{"dp", Priority::bulk};
  const Lane urgent{"ep", Priority::urgent};
  const int edp = shape.dp / shape.ep;
  Mesh mesh;
  mesh.shape_ = shape;
  mesh.dp_rank_ = rank_of(world);
  const int rank = mesh.dp_rank_;
  SLUICE_TRY_ASSIGN(mesh.dp_, group(world, shape.dp, 0, rank, bulk, "dp"));
  SLUICE_TRY_ASSIGN(mesh.ep_, group(world, shape.ep, rank / shape.ep, rank, urgent, "ep"));
  SLUICE_TRY_ASSIGN(mesh.edp_, group(world, edp, rank % shape.ep, rank, bulk, "edp"));
  return mesh;
}

Status Mesh::close() {
  for (Communicator* one : {&ep_, &edp_, &dp_})
    if (one->valid()) SLUICE_TRY(one->close());
  return {};
}

void Mesh::abort(const std::string& why) {
  for (Communicator* one : {&ep_, &edp_, &dp_})
    if (one->valid()) one->abort(why);
}

}  // namespace sluice
