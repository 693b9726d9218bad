// Reads lines from a terminal, with editing, a history and completion.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <signal.h>

// libedit's own.
struct editline;
struct history;

namespace ingle {

struct TypedLine {
  enum class Kind {
    kText,
    kGivenUp, // Ctrl-C; `text` is what stood there
    kEnd, // Ctrl-D in an empty line, or the terminal is gone
  };
  Kind kind = Kind::kEnd;
  std::string text; // UTF-8, without the newline; pasted lines stay together
};

// What can be added to a line that ends at the cursor; empty: nothing.
using CompleteLine = std::function<std::string(std::string_view line)>;

// Standard input has to be a terminal. Prompts and echo go to standard error.
// A signal that ends or stops the program leaves the terminal as it was; one
// that is ignored when the editor is made stays ignored.
//
// Threads: one, and one editor at a time: the terminal is one.
class LineEditor {
 public:
  // `max_history`: inputs; the arrow keys go through the newest.
  LineEditor(CompleteLine complete, size_t max_history);
  ~LineEditor(); // the terminal is as it was
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  TypedLine read(const std::string& prompt);

  // Puts an input into the history that the arrow keys go through.
  void remember(const std::string& text);

 private:
  static LineEditor& of(editline* edit);
  static char* prompt_of(editline* edit);
  static int read_key(editline* edit, wchar_t* key);
  static unsigned char on_interrupt(editline* edit, int key);
  static unsigned char on_suspend(editline* edit, int key);
  static unsigned char on_paste(editline* edit, int key);
  static unsigned char on_complete(editline* edit, int key);
  unsigned char give_up();
  void bind_keys();
  void handle_signals();
  void handle_signal(int number, void (*handler)(int));
  // Does what signals have asked for.
  void follow_terminal();

  CompleteLine complete_;
  std::string prompt_;
  bool interrupted_ = false;
  bool can_paste_ = false; // the terminal knows bracketed paste
  std::vector<std::pair<int, struct sigaction>> earlier_actions_;
  struct history* history_ = nullptr;
  struct editline* edit_ = nullptr;
};

} // namespace ingle
