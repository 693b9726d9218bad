//! `{% generation %}` marks what the assistant said, for training masks. It
//! renders as its content and is a scope of its own, which is what `with` is.

use std::borrow::Cow;

/// The template with such tags replaced, none of them in a comment, in a raw
/// block or in a string.
pub fn without_generation_tags(source: &str) -> Cow<'_, str> {
    if !source.contains("generation") {
        return Cow::Borrowed(source);
    }
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut is_raw = false;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let size = match rest.as_bytes().get(1) {
            Some(b'#') if !is_raw => rest.find("#}").unwrap_or(rest.len()),
            Some(b'{') if !is_raw => code_size(rest, "}}"),
            Some(b'%') if !is_raw || name_of(&rest[2..]) == "endraw" => code_size(rest, "%}"),
            _ => 1,
        };
        let (tag, tail) = rest.split_at(size);
        match tag.strip_prefix("{%").map(name_of) {
            Some("raw") => is_raw = true,
            Some("endraw") => is_raw = false,
            _ => {}
        }
        match tag.strip_prefix("{%").map(trimmed) {
            Some("generation") if !is_raw => out.push_str(&tag.replace("generation", "with")),
            Some("endgeneration") if !is_raw => {
                out.push_str(&tag.replace("endgeneration", "endwith"))
            }
            _ => out.push_str(tag),
        }
        rest = tail;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// What stands in a tag, without marks that control white space.
fn trimmed(body: &str) -> &str {
    body.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+')
}

fn name_of(body: &str) -> &str {
    let body = trimmed(body);
    &body[..body
        .find(|c: char| !c.is_alphanumeric())
        .unwrap_or(body.len())]
}

/// Bytes up to `end`, if that is not in a string.
fn code_size(code: &str, end: &str) -> usize {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in code.char_indices().skip(2) {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '\'' || c == '"' => quote = Some(c),
            None if code[at..].starts_with(end) => return at,
            None => {}
        }
    }
    code.len()
}
