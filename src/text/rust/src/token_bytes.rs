//! The bytes of one token, where the decoders of `tokenizers` give only text:
//! there half a character is U+FFFD.

use std::collections::HashMap;

use tokenizers::decoders::DecoderWrapper;
use tokenizers::{Decoder, Tokenizer};

use crate::boundary::Failure;

/// What a decoder does to a token in the middle of a text.
enum Step {
    /// A character stands for each byte, as GPT-2 spells them.
    ByteLevel,
    /// `<0xAB>` is a byte.
    ByteFallback,
    /// The character is a space.
    Space(char),
    /// Looks at one token at a time.
    Alone(DecoderWrapper),
    /// Looks at whether tokens come before and after it.
    Between(DecoderWrapper),
}

pub struct TokenBytes {
    steps: Vec<Step>,
    /// Tokens that stand in a text as they are spelled.
    verbatim: HashMap<u32, String>,
}

impl TokenBytes {
    pub fn new(tokenizer: &Tokenizer) -> Self {
        let mut steps = Vec::new();
        if let Some(decoder) = tokenizer.get_decoder() {
            add_steps(decoder, &mut steps, &mut false);
        }
        // Where it is not byte-level, an added token that is not special may
        // be made of the marks that spaces became.
        let is_byte_level = steps.iter().any(|step| matches!(step, Step::ByteLevel));
        let verbatim = tokenizer
            .get_added_tokens_decoder()
            .into_iter()
            .filter(|(_, token)| token.special || is_byte_level)
            .map(|(id, token)| (id, token.content))
            .collect();
        TokenBytes { steps, verbatim }
    }

    /// `id` is one of the tokenizer's.
    pub fn of(&self, tokenizer: &Tokenizer, id: u32) -> Result<Vec<u8>, Failure> {
        if let Some(content) = self.verbatim.get(&id) {
            return Ok(content.as_bytes().to_vec());
        }
        let mut piece = tokenizer.id_to_token(id).unwrap_or_default();
        for step in &self.steps {
            match step {
                Step::ByteLevel => {
                    let bytes: Option<Vec<u8>> = piece.chars().map(spelled_byte).collect();
                    return Ok(bytes.unwrap_or_else(|| piece.into_bytes()));
                }
                Step::ByteFallback => {
                    if let Some(byte) = fallback_byte(&piece) {
                        return Ok(vec![byte]);
                    }
                }
                Step::Space(mark) => piece = piece.replace(*mark, " "),
                Step::Alone(decoder) => piece = decode(decoder, vec![piece], 0)?,
                Step::Between(decoder) => {
                    let neighbours = vec![String::new(), piece, String::new()];
                    piece = decode(decoder, neighbours, 1)?;
                }
            }
        }
        Ok(piece.into_bytes())
    }
}

/// `fused`: whether one token was made of all, so that a strip changes the ends
/// of the text only.
fn add_steps(decoder: &DecoderWrapper, steps: &mut Vec<Step>, fused: &mut bool) {
    match decoder {
        DecoderWrapper::Sequence(sequence) => {
            for part in sequence.get_decoders() {
                add_steps(part, steps, fused);
            }
        }
        DecoderWrapper::ByteLevel(_) => steps.push(Step::ByteLevel),
        DecoderWrapper::ByteFallback(_) => steps.push(Step::ByteFallback),
        DecoderWrapper::Metaspace(space) => steps.push(Step::Space(space.get_replacement())),
        DecoderWrapper::Fuse(_) => *fused = true,
        DecoderWrapper::Strip(_) if *fused => {}
        DecoderWrapper::WordPiece(_) | DecoderWrapper::BPE(_) => {
            steps.push(Step::Between(decoder.clone()))
        }
        _ => steps.push(Step::Alone(decoder.clone())),
    }
}

fn decode(decoder: &DecoderWrapper, pieces: Vec<String>, wanted: usize) -> Result<String, Failure> {
    let decoded = decoder
        .decode_chain(pieces)
        .map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(decoded.into_iter().nth(wanted).unwrap_or_default())
}

/// GPT-2's spelling: the visible characters of Latin-1 are themselves, the
/// other bytes are U+0100 and on, in order.
fn spelled_byte(c: char) -> Option<u8> {
    let code = u32::from(c);
    let byte = match code {
        0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF => code,
        0x100..=0x120 => code - 0x100,
        0x121..=0x142 => code - 0x121 + 0x7F,
        0x143 => 0xAD,
        _ => return None,
    };
    u8::try_from(byte).ok()
}

/// As the decoder of `tokenizers` reads it.
fn fallback_byte(piece: &str) -> Option<u8> {
    let digits = piece.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}
