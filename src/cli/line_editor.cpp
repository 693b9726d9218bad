#include "cli/line_editor.h"

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <pthread.h>
#include <termios.h>
#include <unistd.h>

namespace ingle {
namespace {

constexpr std::string_view kPasteOn = "\033[?2004h";
constexpr std::string_view kPasteOff = "\033[?2004l";
constexpr std::wstring_view kPasteEnd = L"\033[201~";
constexpr wchar_t kInterruptKey = 3; // Ctrl-C
// A longer text is for a file and @path; the line is drawn whole at each key.
constexpr size_t kMaxPaste = size_t{1} << 20; // characters

// Signals that end or stop the program.
constexpr int kEndSignals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
// Signals that say that the terminal has changed.
constexpr int kChangeSignals[] = {SIGCONT, SIGWINCH};

// For the signals' handlers. libedit's own are not used: they change the
// terminal in one thread while another, which edits, changes it back.
pthread_t editing_thread{};
struct termios terminal_before{}; // as the editor found it
volatile std::sig_atomic_t is_editing = 0;
volatile std::sig_atomic_t marks_pastes = 0; // what is pasted now
volatile std::sig_atomic_t is_resumed = 0;
volatile std::sig_atomic_t is_resized = 0;

void mark_pastes(bool on) {
  const std::string_view text = on ? kPasteOn : kPasteOff;
  marks_pastes = on ? 1 : 0;
  static_cast<void>(::write(STDERR_FILENO, text.data(), text.size()));
}

// True iff another thread was asked: the one that edits gets the signal then.
bool pass_on(int number) {
  if (::pthread_equal(::pthread_self(), editing_thread) != 0) {
    return false;
  }
  ::pthread_kill(editing_thread, number);
  return true;
}

// Does what the signal does by itself, with the terminal as it was.
void on_end_signal(int number) {
  if (pass_on(number)) {
    return;
  }
  const int error = errno;
  if (marks_pastes != 0) {
    mark_pastes(false);
  }
  // In the background the terminal is another's.
  if (is_editing != 0 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp()) {
    ::tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
  }
  struct sigaction ours{};
  struct sigaction by_default{};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(number, &by_default, &ours);
  ::raise(number);
  // Stopped, and going on.
  ::sigaction(number, &ours, nullptr);
  is_resumed = 1;
  errno = error;
}

void on_change_signal(int number) {
  if (pass_on(number)) {
    return;
  }
  (number == SIGCONT ? is_resumed : is_resized) = 1;
}

// libedit reads characters as the locale has them; ours are always UTF-8.
void use_utf8() {
  std::setlocale(LC_CTYPE, "");
  for (const char* name : {"C.UTF-8", "en_US.UTF-8"}) {
    if (std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0) {
      return;
    }
    std::setlocale(LC_CTYPE, name);
  }
}

// What a paste may put into a line: nothing that moves the cursor.
bool can_stand_in_line(wchar_t c) {
  return c == L'\n' || c == L'\t' ||
      (c >= 0x20 && c != 0x7F && (c < 0x80 || c > 0x9F));
}

} // namespace

LineEditor::LineEditor(CompleteLine complete, size_t max_history)
    : complete_(std::move(complete)) {
  use_utf8();
  const char* terminal = std::getenv("TERM");
  can_paste_ = terminal != nullptr && std::strcmp(terminal, "dumb") != 0;
  handle_signals();

  HistEvent event;
  history_ = ::history_init();
  ::history(history_, &event, H_SETSIZE, static_cast<int>(max_history));
  ::history(history_, &event, H_SETUNIQUE, 1);

  edit_ = ::el_init("ingle", stdin, stderr, stderr);
  el_set(edit_, EL_CLIENTDATA, this);
  el_set(edit_, EL_PROMPT, prompt_of);
  el_set(edit_, EL_EDITOR, "emacs");
  el_set(edit_, EL_HIST, ::history, history_);
  el_set(edit_, EL_GETCFN, read_key);
  bind_keys();
}

LineEditor::~LineEditor() {
  ::el_end(edit_);
  ::history_end(history_);
  for (const auto& [number, action] : earlier_actions_) {
    ::sigaction(number, &action, nullptr);
  }
}

void LineEditor::handle_signals() {
  editing_thread = ::pthread_self();
  ::tcgetattr(STDIN_FILENO, &terminal_before);
  for (const int number : kEndSignals) {
    handle_signal(number, on_end_signal);
  }
  for (const int number : kChangeSignals) {
    handle_signal(number, on_change_signal);
  }
}

void LineEditor::handle_signal(int number, void (*handler)(int)) {
  struct sigaction earlier{};
  ::sigaction(number, nullptr, &earlier);
  if (earlier.sa_handler == SIG_IGN) {
    return; // and stays so
  }
  struct sigaction action{};
  action.sa_handler = handler;
  // on_end_signal() raises its signal again; poll() is not restarted.
  action.sa_flags = SA_NODEFER | SA_RESTART;
  ::sigaction(number, &action, nullptr);
  earlier_actions_.emplace_back(number, earlier);
}

void LineEditor::bind_keys() {
  // Ctrl-C and Ctrl-Z are keys like others while a line is edited.
  el_set(edit_, EL_SETTY, "-d", "-isig", nullptr);
  el_set(edit_, EL_ADDFN, "ingle-interrupt", "Give up", on_interrupt);
  el_set(edit_, EL_BIND, "^C", "ingle-interrupt", nullptr);
  el_set(edit_, EL_ADDFN, "ingle-suspend", "Suspend", on_suspend);
  el_set(edit_, EL_BIND, "^Z", "ingle-suspend", nullptr);
  el_set(edit_, EL_ADDFN, "ingle-paste", "Paste", on_paste);
  el_set(edit_, EL_BIND, "\\e[200~", "ingle-paste", nullptr);
  el_set(edit_, EL_ADDFN, "ingle-complete", "Complete", on_complete);
  el_set(edit_, EL_BIND, "^I", "ingle-complete", nullptr);
  // As in other programs of the terminal, where libedit's own differ.
  el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_set(edit_, EL_BIND, "^W", "ed-delete-prev-word", nullptr);
  el_set(edit_, EL_BIND, "\\e[3~", "ed-delete-next-char", nullptr);
  el_set(edit_, EL_BIND, "\\e[1;5D", "ed-prev-word", nullptr);
  el_set(edit_, EL_BIND, "\\e[1;5C", "em-next-word", nullptr);
}

TypedLine LineEditor::read(const std::string& prompt) {
  prompt_ = prompt;
  interrupted_ = false;
  is_resumed = 0;
  is_resized = 1; // maybe, while nothing was edited
  is_editing = 1;
  if (can_paste_) {
    mark_pastes(true);
  }
  // Before the prompt is there, so that all that is typed at it is ours.
  el_set(edit_, EL_PREP_TERM, 1);
  int length = 0;
  const char* line = ::el_gets(edit_, &length);
  is_editing = 0;
  if (can_paste_) {
    mark_pastes(false);
  }
  if (interrupted_) {
    std::fputs("^C\n", stderr);
    const LineInfo* info = ::el_line(edit_);
    return {
        TypedLine::Kind::kGivenUp, std::string(info->buffer, info->lastchar)};
  }
  if (line == nullptr || length <= 0) {
    std::fputs("\n", stderr);
    return {TypedLine::Kind::kEnd, {}};
  }
  std::string text(line, static_cast<size_t>(length));
  if (text.ends_with('\n')) {
    text.pop_back();
  }
  return {TypedLine::Kind::kText, std::move(text)};
}

void LineEditor::remember(const std::string& text) {
  if (!text.empty()) {
    HistEvent event;
    ::history(history_, &event, H_ENTER, text.c_str());
  }
}

LineEditor& LineEditor::of(editline* edit) {
  LineEditor* editor = nullptr;
  el_get(edit, EL_CLIENTDATA, &editor);
  return *editor;
}

char* LineEditor::prompt_of(editline* edit) {
  return of(edit).prompt_.data();
}

int LineEditor::read_key(editline* edit, wchar_t* key) {
  constexpr auto kInvalid = static_cast<size_t>(-1);
  constexpr auto kIncomplete = static_cast<size_t>(-2);
  std::mbstate_t state{};
  while (true) {
    of(edit).follow_terminal();
    struct pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, -1) < 0) {
      if (errno == EINTR) {
        continue;
      }
      return -1;
    }
    char byte = 0;
    const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
    if (n <= 0) {
      return static_cast<int>(n);
    }
    size_t size = std::mbrtowc(key, &byte, 1, &state);
    if (size == kInvalid) { // left out; the byte may begin another
      state = {};
      size = std::mbrtowc(key, &byte, 1, &state);
    }
    if (size == kInvalid) {
      state = {};
    } else if (size != kIncomplete) {
      return 1;
    }
  }
}

void LineEditor::follow_terminal() {
  if (is_resized != 0) {
    is_resized = 0;
    ::el_resize(edit_);
  }
  if (is_resumed == 0) {
    return;
  }
  is_resumed = 0;
  // Twice, as libedit doesn't know what has become of the terminal.
  el_set(edit_, EL_PREP_TERM, 0);
  el_set(edit_, EL_PREP_TERM, 1);
  if (can_paste_) {
    mark_pastes(true);
  }
  el_set(edit_, EL_REFRESH);
}

unsigned char LineEditor::on_interrupt(editline* edit, int /*key*/) {
  return of(edit).give_up();
}

unsigned char LineEditor::give_up() {
  const LineInfo* info = ::el_line(edit_);
  ::el_cursor(edit_, static_cast<int>(info->lastchar - info->cursor));
  el_set(edit_, EL_REFRESH);
  interrupted_ = true;
  return CC_EOF;
}

unsigned char LineEditor::on_suspend(editline* /*edit*/, int /*key*/) {
  ::kill(0, SIGTSTP); // to the whole job, as the terminal would
  return CC_NORM;
}

unsigned char LineEditor::on_paste(editline* edit, int /*key*/) {
  std::wstring text;
  wchar_t c = 0;
  bool is_too_long = false;
  while (!text.ends_with(kPasteEnd)) {
    if (::el_wgetc(edit, &c) != 1) {
      return CC_EOF;
    }
    // Whoever waits for the end of a paste that doesn't come gets out by it.
    if (c == kInterruptKey) {
      return of(edit).give_up();
    }
    text += c == L'\r' ? L'\n' : c;
    if (text.size() > kMaxPaste) {
      is_too_long = true;
      text.erase(0, text.size() - kPasteEnd.size());
    }
  }
  if (is_too_long) {
    std::fprintf(
        stderr,
        "\na paste over %zu characters is left out: save it, and say @FILE\n",
        kMaxPaste);
    return CC_REDISPLAY;
  }
  text.resize(text.size() - kPasteEnd.size());
  std::erase_if(text, [](wchar_t each) { return !can_stand_in_line(each); });
  while (text.ends_with(L'\n')) {
    text.pop_back(); // what was copied often ends in one
  }
  ::el_winsertstr(edit, text.c_str());
  return CC_REFRESH;
}

unsigned char LineEditor::on_complete(editline* edit, int /*key*/) {
  const LineInfo* info = ::el_line(edit);
  const std::string_view line(
      info->buffer, static_cast<size_t>(info->cursor - info->buffer));
  const std::string rest = of(edit).complete_(line);
  if (rest.empty() || ::el_insertstr(edit, rest.c_str()) != 0) {
    return CC_REFRESH_BEEP;
  }
  return CC_REFRESH;
}

} // namespace ingle
