// What the allocator keeps for later.
#pragma once

namespace ingle {

// Gives free memory back to the system where the allocator can: after work that
// took much more than it keeps. Takes milliseconds. Threads: any.
void give_back_free_memory();

} // namespace ingle
