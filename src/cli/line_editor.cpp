#include "cli/line_editor.h"

#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

namespace ingle {
namespace {

// Larger pastes are not kept: the history is read whole at each start.
constexpr size_t kMaxHistoryEntry = size_t{64} << 10;

constexpr const char* kPasteOn = "\033[?2004h";
constexpr const char* kPasteOff = "\033[?2004l";
constexpr std::wstring_view kPasteEnd = L"\033[201~";

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

LineEditor::LineEditor(CompleteLine complete) : complete_(std::move(complete)) {
  use_utf8();
  const char* terminal = std::getenv("TERM");
  can_paste_ = terminal != nullptr && std::strcmp(terminal, "dumb") != 0;

  HistEvent event;
  history_ = ::history_init();
  ::history(history_, &event, H_SETSIZE, kMaxHistory);
  ::history(history_, &event, H_SETUNIQUE, 1);

  edit_ = ::el_init("ingle", stdin, stderr, stderr);
  el_set(edit_, EL_CLIENTDATA, this);
  el_set(edit_, EL_PROMPT, prompt_of);
  el_set(edit_, EL_EDITOR, "emacs");
  el_set(edit_, EL_HIST, ::history, history_);
  // Puts the terminal right before a signal stops or ends us.
  el_set(edit_, EL_SIGNAL, 1);
  bind_keys();
}

LineEditor::~LineEditor() {
  ::el_end(edit_);
  ::history_end(history_);
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
  std::fputs(can_paste_ ? kPasteOn : "", stderr);
  // Before the prompt is there, so that all that is typed at it is ours.
  el_set(edit_, EL_PREP_TERM, 1);
  int length = 0;
  const char* line = ::el_gets(edit_, &length);
  std::fputs(can_paste_ ? kPasteOff : "", stderr);
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
  if (!text.empty() && text.size() <= kMaxHistoryEntry) {
    HistEvent event;
    ::history(history_, &event, H_ENTER, text.c_str());
  }
}

void LineEditor::load_history(const std::string& path) {
  HistEvent event;
  ::history(history_, &event, H_LOAD, path.c_str());
}

Status LineEditor::save_history(FileSystem& fs, const std::string& path) const {
  INGLE_RETURN_IF_ERROR(fs.create_directory(parent_path(path)));
  const std::string part = path + "." + std::to_string(getpid());
  HistEvent event;
  if (::history(history_, &event, H_SAVE, part.c_str()) < 0) {
    static_cast<void>(fs.remove(part)); // the first failure is the one to tell
    return Status::io(path + ": can't be written");
  }
  return fs.rename(part, path);
}

LineEditor& LineEditor::of(editline* edit) {
  LineEditor* editor = nullptr;
  el_get(edit, EL_CLIENTDATA, &editor);
  return *editor;
}

char* LineEditor::prompt_of(editline* edit) {
  return of(edit).prompt_.data();
}

unsigned char LineEditor::on_interrupt(editline* edit, int /*key*/) {
  const LineInfo* info = ::el_line(edit);
  ::el_cursor(edit, static_cast<int>(info->lastchar - info->cursor));
  el_set(edit, EL_REFRESH);
  of(edit).interrupted_ = true;
  return CC_EOF;
}

unsigned char LineEditor::on_suspend(editline* /*edit*/, int /*key*/) {
  ::kill(0, SIGTSTP); // to the whole job, as the terminal would
  return CC_NORM;
}

unsigned char LineEditor::on_paste(editline* edit, int /*key*/) {
  std::wstring text;
  wchar_t c = 0;
  while (!text.ends_with(kPasteEnd)) {
    if (::el_wgetc(edit, &c) != 1) {
      return CC_EOF;
    }
    text += c == L'\r' ? L'\n' : c;
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
