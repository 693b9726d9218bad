//! The tokens of a tokenizer as `llguidance` wants them: their bytes in a trie.

use std::sync::Arc;

use toktrie::{TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv, INVALID_TOKEN};

use crate::boundary::Failure;
use crate::tokenizer::Tokenizer;

/// Longer ones are left out of masks: the trie is as deep as they are long.
const MAX_TOKEN_BYTES: usize = 1024;

pub struct GrammarTokens {
    tokenizer: Tokenizer,
    trie: TokTrie,
}

impl GrammarTokens {
    /// Ids from the tokenizer's on, up to the model's `vocab_size`, have no
    /// text, and nothing allows them.
    pub fn environment(
        tokenizer: &Tokenizer,
        eos: &[i32],
        vocab_size: usize,
    ) -> Result<TokEnv, Failure> {
        let eos: Vec<TokenId> = eos
            .iter()
            .map(|id| *id as TokenId)
            .filter(|id| (*id as usize) < vocab_size)
            .collect();
        let words: Vec<Vec<u8>> = (0..vocab_size as TokenId)
            .map(|id| word(tokenizer, id, eos.contains(&id)))
            .collect();
        let first_eos = eos.first().copied().unwrap_or(INVALID_TOKEN);
        let info = TokRxInfo::new(vocab_size as u32, first_eos);
        let mut trie = TokTrie::from(&info, &words);
        if eos.len() > 1 {
            trie = trie.with_eos_tokens(&eos);
        }
        Ok(Arc::new(GrammarTokens {
            tokenizer: tokenizer.clone(),
            trie,
        }))
    }
}

impl TokenizerEnv for GrammarTokens {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    /// As the model's tokenizer cuts the text, where that keeps its bytes: some
    /// put a space in front, or read names of special tokens.
    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        let ids = self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            let ids = self.tokenizer.encode(text, false).unwrap_or_default();
            ids.into_iter().map(|id| id as TokenId).collect()
        });
        if self.trie.decode_raw(&ids) == bytes {
            return ids;
        }
        self.trie.greedy_tokenize(bytes)
    }
}

/// Special tokens and ends of sequence are never text; a mark that no text has
/// stands before their names.
fn word(tokenizer: &Tokenizer, id: TokenId, is_eos: bool) -> Vec<u8> {
    const MARK: u8 = TokTrie::SPECIAL_TOKEN_MARKER;
    let Ok(bytes) = tokenizer.token_bytes(id as i32) else {
        return Vec::new();
    };
    if bytes.is_empty() || bytes.len() > MAX_TOKEN_BYTES || bytes.contains(&MARK) {
        return Vec::new();
    }
    if is_eos || tokenizer.is_special(id) {
        return [&[MARK], bytes.as_slice()].concat();
    }
    bytes
}
