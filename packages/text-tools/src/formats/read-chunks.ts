import type { ModelChunk, ModelContext, ModelRequest, ToolDeclaration } from 'millrace';
import { toolInput } from 'millrace/values';
import {
  concatMap,
  defer,
  dematerialize,
  materialize,
  type MonoTypeOperatorFunction,
  type ObservableNotification,
} from 'rxjs';
import { withoutDamage } from '../damaged-text.js';
import { refusals } from '../dialects/classify.js';
import type { Dialect } from '../dialects/index.js';
import { formats, type ThinkingTag, thinkingTags } from './formats.js';
import type { WrittenCall } from './read-calls.js';
import { createReader, type Reader } from './reader.js';

export interface ReadInit {
  readonly opened?: boolean | undefined;
  readonly tags?: readonly ThinkingTag[] | undefined;
  readonly dialect?: Dialect | undefined;
  /** The tools that text may call; without any, only thoughts are separated. */
  readonly tools: readonly ToolDeclaration[];
}

/** Replaces the text of a model by what it means. */
export const readChunks = (
  init: ReadInit,
  asked: ModelRequest,
  context: ModelContext,
): MonoTypeOperatorFunction<ModelChunk> => {
  const toReader = readerOf(init);
  return withoutDamage((source) =>
    defer(() => {
      const { next, flush } = createChunkReader(toReader, {
        dialect: init.dialect,
        asked,
        context,
      });
      return source.pipe(
        materialize(),
        concatMap((it): readonly ObservableNotification<ModelChunk>[] =>
          it.kind === 'N'
            ? next(it.value).map((value) => ({ kind: 'N', value }))
            : [...flush().map((value) => ({ kind: 'N', value }) as const), it],
        ),
        dematerialize(),
      );
    }),
  );
};

type ReaderOutput = Pick<Parameters<typeof createReader>[0], 'emit' | 'emitCall' | 'mayRetract'>;

const readerOf = ({
  opened = false,
  tags = [],
  dialect,
  tools,
}: ReadInit): ((output: ReaderOutput) => Reader) => {
  const table = new Map(tools.map((tool) => [tool.name, tool]));
  const known = formats.filter(({ isKnown }) => dialect === undefined || isKnown !== true);
  return (output) =>
    createReader({
      tags: [...tags, ...thinkingTags],
      formats: tools.length === 0 ? [] : known,
      isOpened: opened,
      tools: table,
      hasBareJson: dialect === undefined,
      ...output,
    });
};

interface Asked {
  readonly asked: ModelRequest;
  readonly dialect: Dialect | undefined;
}

/** Reads the chunks of one subscription; a restart begins a new reply. */
const createChunkReader = (
  toReader: (output: ReaderOutput) => Reader,
  { context, ...asked }: Asked & { readonly context: ModelContext },
) => {
  const out: ModelChunk[] = [];
  /** Tool calls of the server would be lost. */
  let mayRetract = true;
  let isEnded = false;
  let calls = createCalls(asked);

  const begin = (): Reader => {
    isEnded = false;
    mayRetract = true;
    calls = createCalls(asked);
    return toReader({
      emit: (chunk) => out.push(chunk),
      emitCall: (call, written) => {
        const chunk = calls.read(call, written);
        mayRetract &&= chunk === undefined;
        if (chunk !== undefined) out.push(chunk);
      },
      mayRetract: () => mayRetract,
    });
  };
  let reader = begin();
  const taken = (): readonly ModelChunk[] => joined(out.splice(0));
  const end = (isWhole: boolean): void => {
    if (isEnded) return;
    isEnded = true;
    reader.end(isWhole);
    if (isWhole) out.push(...calls.faults(context.report));
  };
  const next = (chunk: ModelChunk): readonly ModelChunk[] => {
    switch (chunk.type) {
      case 'text':
        if (!isEnded) reader.push(chunk.text);
        return taken();
      case 'restart':
        reader = begin();
        return [chunk];
      case 'finish':
        end(chunk.finish === 'stop');
        return [...taken(), chunk];
      case 'usage':
      case 'facts':
        return [chunk];
      default:
        mayRetract = false;
        return [chunk];
    }
  };
  return {
    next,
    /** Ends a reply whose model did not end it. */
    flush: (): readonly ModelChunk[] => {
      end(false);
      return taken();
    },
  };
};

/** The tool calls of a reply, and the first fault of those that name no tool. */
const createCalls = ({ asked, dialect }: Asked) => {
  let count = 0;
  let fault: { readonly why: string; readonly written: string } | undefined;
  return {
    read: (
      { name = '', json, input, problem }: WrittenCall,
      written: string,
    ): ModelChunk | undefined => {
      if (name === '') {
        fault ??= { why: problem ?? 'The tool call names no tool.', written };
        return undefined;
      }
      const refusal = problem ?? refusalOf(asked, dialect, count);
      count += 1;
      return {
        type: 'toolCall',
        name,
        ...(json === undefined ? toolInput(input ?? {}) : { json }),
        ...(refusal === undefined ? {} : { refusal }),
      };
    },
    /** Asks the model again if no call can be used; otherwise, reports the fault. */
    faults: (report: ModelContext['report']): readonly ModelChunk[] => {
      if (fault === undefined) return [];
      if (count === 0) return [malformed(fault.why, fault.written, asked, dialect)];
      report({ type: 'warning', message: `A tool call was ignored: ${fault.why}` });
      return [];
    },
  };
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
  if (toolChoice === 'none') return refusals.none;
  return dialect !== undefined && index >= dialect.maxUses ? refusals.one : undefined;
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
