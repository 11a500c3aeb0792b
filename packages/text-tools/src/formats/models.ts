import { aroundModel, type Model, type ModelRequest, timeouts } from 'millrace';
import { checkOptions, having, isFlag, isObject, type Rule } from 'millrace/values';
import { type Dialect, textTools } from '../dialects/index.js';
import type { ThinkingTag } from './formats.js';
import { readChunks } from './read-chunks.js';

export type { ThinkingTag } from './formats.js';

/** The options of `splitThinking`. */
export interface SplitThinkingOptions {
  /**
   * Whether the chat template opens the thought, so that replies start within it, as with DeepSeek R1 and QwQ. Their
   * thoughts then stream as thoughts. Otherwise they stream as text, which is taken back at the closing tag. A reply
   * without a closing tag is the answer, in any case. Default: false.
   */
  readonly opened?: boolean | undefined;
  /** More tags of thoughts, such as `[['<plan>', '</plan>']]`. */
  readonly tags?: readonly ThinkingTag[] | undefined;
}

/** The options of `parseToolCalls`. */
export interface ParseToolCallsOptions extends SplitThinkingOptions {
  /** Describes the tools in the prompt with this dialect, as `textTools` does, for servers without tools. */
  readonly dialect?: Dialect | undefined;
}

/**
 * Separates the thoughts that a server leaves in the text of a model: `<think>…</think>` and the tags of other families
 * become `thinking` chunks as they stream. Only a tag at the start of a reply counts, or a closing tag that ends all
 * text before it; tags in code or later in the text are text. Everything else passes through. Use `parseToolCalls` if
 * the server leaves tool calls in the text, too.
 *
 * @example
 * createAgent({ model: splitThinking(vllm('Qwen/Qwen3-8B')) });
 */
export const splitThinking = (model: Model, options: SplitThinkingOptions = {}): Model => {
  checkModel('splitThinking()', model);
  checkOptions('splitThinking()', options, thinkingRules);
  const timed = timeouts(model);
  return aroundModel(timed, (request, context) =>
    timed.stream$(request, context).pipe(readChunks({ ...options, tools: [] }, request, context)),
  );
};

/**
 * Parses the tool calls and thoughts that a server leaves in the text of a model, in the format of its family: gpt-oss,
 * Command R, GLM, DeepSeek, Kimi, Qwen, Hermes, Mistral, MiniMax, Llama, Gemma and others. Tool calls that the server
 * parses pass through. A truncated call never runs; for a broken one, the
 * model gets the reason.
 *
 * @example
 * createAgent({ model: parseToolCalls(llamaCpp('gpt-oss-20b')), tools });
 */
export const parseToolCalls = (model: Model, options: ParseToolCallsOptions = {}): Model => {
  checkModel('parseToolCalls()', model);
  checkOptions('parseToolCalls()', options, { ...thinkingRules, dialect: isObject });
  const timed = timeouts(model);
  const parsed = (asked: ModelRequest): Model =>
    aroundModel(timed, (request, context) =>
      timed
        .stream$(request, context)
        .pipe(readChunks({ ...options, tools: asked.tools ?? [] }, asked, context)),
    );
  const { dialect } = options;
  if (dialect === undefined) {
    return aroundModel(timed, (request, context) => parsed(request).stream$(request, context));
  }
  // The inner model sees no tools: they are in the prompt. Their names and schemas come from the outer request.
  return aroundModel(textTools(timed, dialect), (request, context) =>
    textTools(parsed(request), dialect).stream$(request, context),
  );
};

const areTags: Rule = [
  (value) =>
    Array.isArray(value) &&
    value.every(
      (tag) =>
        Array.isArray(tag) &&
        tag.length === 2 &&
        tag.every((it) => typeof it === 'string' && it.trim() !== ''),
    ),
  "a list of pairs, such as [['<plan>', '</plan>']]",
];

const checkModel = (owner: string, model: unknown): void => {
  checkOptions(owner, { model }, { model: isModel }, ['model']);
};

const isModel = having('stream$', "a model, such as vllm('Qwen/Qwen3-8B')");

const thinkingRules = { opened: isFlag, tags: areTags };
