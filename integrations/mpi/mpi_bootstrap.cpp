#include "integrations/mpi/mpi_bootstrap.h"

#include <mpi.h>

#include <array>
#include <string>

#include "comm/bootstrap/control.h"
#include "comm/bootstrap/root_listener.h"

namespace sluice {
namespace {

constexpr int kRoot = 0;

Status check(int result, const char* call) {
  if (result == MPI_SUCCESS) return {};
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(result, text.data(), &length);
  return {Code::system, std::string(call) + ": " + std::string(text.data(), static_cast<std::size_t>(length))};
}

// Initialises MPI if nobody has, and finalises it in that case.
class Session {
 public:
  static Result<Session> open() {
    int finalized = 0;
    SLUICE_TRY(check(MPI_Finalized(&finalized), "MPI_Finalized"));
    if (finalized != 0)
      return Error{Code::unsupported, "MPI was finalised already; ask for the unique id before MPI_Finalize"};
    int initialized = 0;
    SLUICE_TRY(check(MPI_Initialized(&initialized), "MPI_Initialized"));
    if (initialized == 0) SLUICE_TRY(check(MPI_Init(nullptr, nullptr), "MPI_Init"));
    return Session(initialized == 0);
  }
  Session(Session&& other) noexcept : owner_(other.owner_) { other.owner_ = false; }
  Session& operator=(Session&&) = delete;
  ~Session() {
    if (owner_) MPI_Finalize();
  }

 private:
  explicit Session(bool owner) : owner_(owner) {}
  bool owner_;
};

// What rank 0 sends: its id, or why there is none, so that nobody waits for an id that will not come.
struct Letter {
  int code = 0;
  UniqueId id{};
  std::array<char, 512> text{};
};

Letter write_letter(const Config& config) {
  Letter letter;
  const auto id = Control::make_unique_id(config);
  if (id.ok()) {
    // Released so that a forked process can take the port: a copy of the listener left here would swallow joiners.
    forget_root_listeners(*to_rendezvous(*id));
    letter.id = *id;
    return letter;
  }
  letter.code = static_cast<int>(id.error().code);
  id.error().text.copy(letter.text.data(), letter.text.size() - 1);
  return letter;
}

}  // namespace

Result<UniqueId> unique_id_by_mpi(const Config& config) {
  SLUICE_TRY_ASSIGN(const Session session, Session::open());
  int rank = 0;
  SLUICE_TRY(check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank"));
  Letter letter;
  if (rank == kRoot) letter = write_letter(config);
  SLUICE_TRY(check(MPI_Bcast(&letter, sizeof(letter), MPI_BYTE, kRoot, MPI_COMM_WORLD), "MPI_Bcast"));
  if (letter.code != 0) return Error{static_cast<Code>(letter.code), std::string("MPI rank 0: ") + letter.text.data()};
  return letter.id;
}

}  // namespace sluice
