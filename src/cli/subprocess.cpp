#include "cli/subprocess.h"

#include <cerrno>
#include <csignal>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace ingle {

Status run_program(const std::vector<std::string>& argv) {
  std::vector<std::string> owned = argv;
  std::vector<char*> pointers;
  for (auto& argument : owned) {
    pointers.push_back(argument.data());
  }
  pointers.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(
      &child, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return Status::not_found(argv[0] + " can't be run; is it installed?");
  }
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) {
    return Status::ok();
  }
  return Status::internal(
      argv[0] + " failed" +
      (WIFEXITED(state)
           ? " with exit code " + std::to_string(WEXITSTATUS(state))
           : " by a signal"));
}

} // namespace ingle
