import {
  type Model,
  type ModelChunk,
  type ModelContext,
  type ModelRequest,
  retry,
  type ToolDeclaration,
} from '@millrace/core';
import { type Dialect, textTools } from '@millrace/core/text-tools';
import {
  checkOptions,
  isFlag,
  isObject,
  isRecord,
  type Rule,
  toolInput,
} from '@millrace/core/values';
import {
  concatMap,
  defer,
  dematerialize,
  materialize,
  type MonoTypeOperatorFunction,
  type ObservableNotification,
} from 'rxjs';
import { formats, type ThinkingTag, thinkingTags } from './formats.js';
import type { WrittenCall } from './read-calls.js';
import { createReader, type Reader } from './reader.js';

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
  const timed = keepingTime(model);
  return around(timed, (request, context) =>
    timed.stream$(request, context).pipe(read({ ...options, tools: [] }, request, context)),
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
  const timed = keepingTime(model);
  const parsed = (asked: ModelRequest): Model =>
    around(timed, (request, context) =>
      timed
        .stream$(request, context)
        .pipe(read({ ...options, tools: asked.tools ?? [] }, asked, context)),
    );
  const { dialect } = options;
  if (dialect === undefined) {
    return around(timed, (request, context) => parsed(request).stream$(request, context));
  }
  // The inner model sees no tools: they are in the prompt. Their names and schemas come from the outer request.
  return around(textTools(timed, dialect), (request, context) =>
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

const thinkingRules = { opened: isFlag, tags: areTags };

const checkModel = (owner: string, model: unknown): void => {
  checkOptions(owner, { model }, { model: isModel }, ['model']);
};

const isModel: Rule = [
  (value) => isRecord(value) && typeof value['stream$'] === 'function',
  "a model, such as vllm('Qwen/Qwen3-8B')",
];

/** Time-outs measure the chunks of the model, not what is emitted once a call is complete. */
const keepingTime = (model: Model): Model =>
  model.keepsTime === true ? model : retry(model, { attempts: 1 });

const around = (
  { name, unsupported, keepsTime, toolsInPrompt }: Model,
  stream$: Model['stream$'],
): Model => ({
  name,
  ...(unsupported === undefined ? {} : { unsupported }),
  ...(keepsTime === undefined ? {} : { keepsTime }),
  ...(toolsInPrompt === undefined ? {} : { toolsInPrompt }),
  stream$,
});

interface ReadInit extends ParseToolCallsOptions {
  readonly tools: readonly ToolDeclaration[];
}

const read = (
  { opened = false, tags = [], dialect, tools }: ReadInit,
  asked: ModelRequest,
  { report }: ModelContext,
): MonoTypeOperatorFunction<ModelChunk> => {
  const table = new Map(tools.map((tool) => [tool.name, tool]));
  const known = formats.filter(({ isKnown }) => dialect === undefined || isKnown !== true);
  return (source) =>
    defer(() => {
      let out: ModelChunk[] = [];
      let calls = 0;
      let fault: { readonly why: string; readonly written: string } | undefined;
      /** Tool calls of the server would be lost. */
      let mayRetract = true;
      let reader: Reader;

      const emitCall = (
        { name = '', json, input, problem }: WrittenCall,
        written: string,
      ): void => {
        if (name === '') {
          fault ??= { why: problem ?? 'The tool call names no tool.', written };
          return;
        }
        const refusal = problem ?? refusalOf(asked, dialect, calls);
        calls += 1;
        mayRetract = false;
        out.push({
          type: 'toolCall',
          name,
          ...(json === undefined ? toolInput(input ?? {}) : { json }),
          ...(refusal === undefined ? {} : { refusal }),
        });
      };
      const begin = (): void => {
        calls = 0;
        fault = undefined;
        mayRetract = true;
        reader = createReader({
          tags: [...tags, ...thinkingTags],
          formats: tools.length === 0 ? [] : known,
          isOpened: opened,
          tools: table,
          hasBareJson: dialect === undefined,
          emit: (chunk) => out.push(chunk),
          emitCall,
          mayRetract: () => mayRetract,
        });
      };
      const emitted = (): readonly ModelChunk[] => {
        const chunks = joined(out);
        out = [];
        return chunks;
      };
      let isEnded = false;
      const end = (isWhole: boolean): void => {
        if (isEnded) return;
        isEnded = true;
        reader.end(isWhole);
        if (fault === undefined || !isWhole) return;
        if (calls === 0) out.push(malformed(fault.why, fault.written, asked, dialect));
        else report({ type: 'warning', message: `A tool call was ignored: ${fault.why}` });
      };
      const next = (chunk: ModelChunk): readonly ModelChunk[] => {
        switch (chunk.type) {
          case 'text':
            if (!isEnded) reader.push(chunk.text);
            return emitted();
          case 'restart':
            isEnded = false;
            begin();
            return [chunk];
          case 'finish':
            end(chunk.finish === 'stop');
            return [...emitted(), chunk];
          case 'usage':
          case 'facts':
            return [chunk];
          default:
            mayRetract = false;
            return [chunk];
        }
      };
      const flush = (): readonly ModelChunk[] => {
        end(false);
        return emitted();
      };
      begin();
      return source.pipe(
        materialize(),
        concatMap((it): readonly ObservableNotification<ModelChunk>[] =>
          it.kind === 'N'
            ? next(it.value).map((value) => ({ kind: 'N', value }))
            : [...flush().map((value) => ({ kind: 'N', value }) as const), it],
        ),
        dematerialize(),
      );
    });
};

/** Neighbouring deltas of one kind as one. */
const joined = (chunks: readonly ModelChunk[]): readonly ModelChunk[] => {
  const all: ModelChunk[] = [];
  for (const chunk of chunks) {
    const last = all.at(-1);
    const isDelta = chunk.type === 'text' || chunk.type === 'thinking';
    if (isDelta && last?.type === chunk.type) {
      all[all.length - 1] = { type: chunk.type, text: last.text + chunk.text };
    } else all.push(chunk);
  }
  return all;
};

const refusalOf = (
  { toolChoice }: ModelRequest,
  dialect: Dialect | undefined,
  index: number,
): string | undefined => {
  if (toolChoice === 'none') return 'Not executed: no tool may be used now.';
  return dialect !== undefined && index >= dialect.maxUses
    ? 'Not executed: one action per step. Call it again in your next step if you still need it.'
    : undefined;
};

const malformed = (
  why: string,
  written: string,
  { tools = [], toolChoice, outputSchema }: ModelRequest,
  dialect: Dialect | undefined,
): ModelChunk => {
  const needs = { tools, toolChoice, outputSchema };
  const feedback =
    dialect === undefined
      ? `Your last tool call could not be used: ${why}\n\nCall the tool again, or answer.\n\nYou wrote:\n${written.slice(0, maxQuoted)}`
      : dialect.prompts.correction({
          ...needs,
          why,
          tool: undefined,
          forms: dialect.prompts.forms(needs),
          written: written.slice(0, maxQuoted),
        });
  return { type: 'malformed', feedback, why, written, isAnswer: false };
};

const maxQuoted = 1_500;
