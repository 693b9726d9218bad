// A model folder's text side: tokenizer, template, defaults.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/status.h"
#include "engine/served_model.h"
#include "model/config.h"

namespace ingle {

// Reads tokenizer.json, tokenizer_config.json, chat_template.jinja and
// generation_config.json where they are there. Before
// the weights, best: to parse a tokenizer takes several times what it keeps,
// and that is free again then. A folder without a tokenizer is
// served by token ids alone. chat_template.jinja stands over a template in
// tokenizer_config.json, as in the ecosystem's own loader. `overrides` stands
// over generation_config.json, knob by knob.
// Lifetime: `clock` outlives the model.
// Errors: kCorruption, kIo; one line that names the file and the cause.
Result<std::shared_ptr<ServedModel>> load_served_model(
    FileSystem& fs,
    const Clock& clock,
    const std::string& folder,
    const ModelConfig& config,
    const GenerationDefaults& overrides);

} // namespace ingle
