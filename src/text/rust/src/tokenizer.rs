use std::collections::HashSet;
use std::str::FromStr;
use std::sync::Arc;

use crate::boundary::Failure;
use crate::token_bytes::TokenBytes;

/// Ids are indices of arrays elsewhere (logits, the set below): a file can't
/// make them arbitrarily large. The largest vocabularies in use have 262,144.
const MAX_ID: u32 = 1 << 24;

/// Clones share the vocabulary.
#[derive(Clone)]
pub struct Tokenizer(Arc<Vocabulary>);

struct Vocabulary {
    inner: tokenizers::Tokenizer,
    /// By id: whether a token has it.
    known: Vec<bool>,
    /// Ids of tokens that are no text.
    special: HashSet<u32>,
    bytes: TokenBytes,
}

impl Tokenizer {
    pub fn from_json(json: &[u8]) -> Result<Self, Failure> {
        let json = std::str::from_utf8(json)
            .map_err(|error| Failure::Failed(format!("not UTF-8: {error}")))?;
        let mut inner = tokenizers::Tokenizer::from_str(json)
            .map_err(|error| Failure::Failed(error.to_string()))?;
        // Prompts are never cut or filled up behind the caller's back, and a
        // hostile file can't ask for gigabytes of padding.
        inner.with_padding(None);
        inner
            .with_truncation(None)
            .map_err(|error| Failure::Failed(error.to_string()))?;

        let mut known = Vec::new();
        let added = inner.get_added_tokens_decoder();
        let ids = inner.get_vocab(false).into_values();
        for id in ids.chain(added.into_keys()) {
            if id >= MAX_ID {
                return Err(Failure::Failed(format!(
                    "a token has the id {id}; the limit is {MAX_ID}"
                )));
            }
            let index = id as usize;
            if known.len() <= index {
                known.resize(index + 1, false);
            }
            known[index] = true;
        }
        if known.is_empty() {
            return Err(Failure::Failed("the vocabulary is empty".into()));
        }
        let special = inner
            .get_added_tokens_decoder()
            .into_iter()
            .filter(|(_, token)| token.special)
            .map(|(id, _)| id)
            .collect();
        let bytes = TokenBytes::new(&inner);
        Ok(Tokenizer(Arc::new(Vocabulary {
            inner,
            known,
            special,
            bytes,
        })))
    }

    pub fn encode(&self, text: &str, add_special_tokens: bool) -> Result<Vec<i32>, Failure> {
        let encoding = self
            .0
            .inner
            .encode_fast(text, add_special_tokens)
            .map_err(|error| Failure::Failed(error.to_string()))?;
        // Post-processors name ids of their own, which may lie outside the
        // vocabulary.
        encoding
            .get_ids()
            .iter()
            .map(|id| self.check(*id))
            .collect()
    }

    pub fn decode(&self, ids: &[i32], skip_special_tokens: bool) -> Result<String, Failure> {
        for id in ids {
            self.check(*id as u32)?;
        }
        let ids: Vec<u32> = ids.iter().map(|id| *id as u32).collect();
        self.0
            .inner
            .decode(&ids, skip_special_tokens)
            .map_err(|error| Failure::Failed(error.to_string()))
    }

    pub fn id_to_token(&self, id: i32) -> Option<String> {
        self.0.inner.id_to_token(u32::try_from(id).ok()?)
    }

    pub fn token_bytes(&self, id: i32) -> Result<Vec<u8>, Failure> {
        self.check(id as u32)?;
        self.0.bytes.of(&self.0.inner, id as u32)
    }

    pub fn is_special(&self, id: u32) -> bool {
        self.0.special.contains(&id)
    }

    pub fn token_to_id(&self, token: &str) -> Option<i32> {
        i32::try_from(self.0.inner.token_to_id(token)?).ok()
    }

    pub fn vocab_size(&self) -> i32 {
        self.0.known.len() as i32
    }

    fn check(&self, id: u32) -> Result<i32, Failure> {
        match self.0.known.get(id as usize) {
            Some(true) => Ok(id as i32),
            _ => Err(Failure::Failed(format!(
                "the vocabulary has no token with the id {}",
                id as i32
            ))),
        }
    }
}
