//! Python's notions of white space, of lines and of words.

/// As `char::is_whitespace`, and the separators of ASCII.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1C'..='\x1F').contains(&c)
}

/// `str.splitlines()`.
pub fn split_lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(is_line_end).unwrap_or(rest.len());
        let (line, tail) = rest.split_at(end);
        let size = match tail.chars().next() {
            Some('\r') if tail.starts_with("\r\n") => 2,
            Some(c) => c.len_utf8(),
            None => 0,
        };
        lines.push(if keep_ends { &rest[..end + size] } else { line });
        rest = &tail[size..];
    }
    lines
}

/// At least as many as `split_lines` finds.
pub fn count_lines(text: &str) -> usize {
    1 + text.matches(is_line_end).count()
}

fn is_line_end(c: char) -> bool {
    matches!(c, '\n'..='\r' | '\x1C'..='\x1E' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// `str.split(None, limit)`.
pub fn split_words(text: &str, limit: Option<usize>) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        if limit == Some(words.len()) {
            words.push(rest);
            break;
        }
        let end = rest.find(is_space).unwrap_or(rest.len());
        words.push(&rest[..end]);
        rest = rest[end..].trim_start_matches(is_space);
    }
    words
}

/// `str.rsplit(None, limit)`.
pub fn split_last_words(text: &str, limit: Option<usize>) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_end_matches(is_space);
    while !rest.is_empty() {
        if limit == Some(words.len()) {
            words.push(rest);
            break;
        }
        let start = rest
            .char_indices()
            .rev()
            .find(|(_, c)| is_space(*c))
            .map_or(0, |(at, c)| at + c.len_utf8());
        words.push(&rest[start..]);
        rest = rest[..start].trim_end_matches(is_space);
    }
    words.reverse();
    words
}

/// `str.title()`.
pub fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_word = false;
    for c in text.chars() {
        if in_word {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        in_word = c.is_lowercase() || c.is_uppercase();
    }
    out
}
