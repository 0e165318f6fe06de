// A file through which rank 0 tells the others where to join. It holds the secret, so it is readable by its user alone.
//
//   Written  by rank 0: a new file of mode 0600 renamed over whatever was there, so nobody reads half of one. Removed by rank 0
//            when the join is over.
//   Read     by the others, again before every round of attempts: a stale file of an earlier job leads nowhere until it is
//            replaced. Refused: a link, a file of another user, one that others may read or write.
//   Text     "sluice rendezvous 1", "job NAME", "id HEX", one a line.
#pragma once

#include <string>

#include "base/result.h"
#include "comm/bootstrap/unique_id.h"

namespace sluice {

// Errors: system (names the path).
Status write_rendezvous_file(const std::string& path, const Rendezvous& rendezvous, const std::string& job);

// Errors: timeout: not there yet, or of another job; refused: not to be trusted; invalid_argument: not a rendezvous file; system.
Result<Rendezvous> read_rendezvous_file(const std::string& path, const std::string& job);

// Removes the file if it still holds this secret.
void remove_rendezvous_file(const std::string& path, const Rendezvous& rendezvous);

// A directory for such files that only this user can enter: `runtime_directory` when it is one, else /tmp/sluice-UID, made now.
// Errors: refused (somebody else's, or open to others), system.
Result<std::string> private_directory(const std::string& runtime_directory);

}  // namespace sluice
