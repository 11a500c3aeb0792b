import type { EventOf, ToolUseBlock } from '@millrace/core';
import { parsedJson } from '@millrace/core/adapter';
import type { Part, Speaker, ToolOutcome } from './part.js';

/** What a reader has seen of one use of a tool. */
export interface ShownTool {
  /** What the reader calls it. */
  readonly id: string;
  /** A piece of its arguments. */
  chunk(name: string, delta: string): readonly Part[];
  /** It is whole; or it has been edited since. */
  toolUse(toolUse: ToolUseBlock): readonly Part[];
  progress(event: EventOf<'actingChunk'>): readonly Part[];
  /** It is suspended: its result comes later, by another call. */
  suspend(toolUse: ToolUseBlock): readonly Part[];
  /** Ends it as not run, unless it is suspended. */
  close(): readonly Part[];
  /** Ends it, where it has been shown and has not ended. */
  end(outcome: ToolOutcome): readonly Part[];
}

/** Begins a use of a tool that nobody has seen anything of. */
export const createShownTool = (by: Speaker, messageId: string, toolUseId: string): ShownTool => {
  const id = `${messageId}/${toolUseId}`;
  const json: string[] = [];
  let shownName = '';
  /** As it was last told, since it was whole. */
  let told: ToolUseBlock | undefined;
  let hasProgress = false;
  let isSuspended = false;
  let hasEnded = false;

  const deltaOf = (delta: string): readonly Part[] =>
    delta === '' ? [] : [{ type: 'toolDelta', by, id, delta }];
  /** A reader must hear the name first: what came before it is told behind it. */
  const named = (name: string): readonly Part[] => {
    if (shownName !== '' || name === '') return [];
    shownName = name;
    return [{ type: 'toolStart', by, id, name, messageId }, ...deltaOf(json.join(''))];
  };
  const whole = (toolUse: ToolUseBlock): readonly Part[] => {
    const name = nameOf(toolUse);
    const start = named(name);
    const streamed = json.join('');
    const { input, invalidInput } = toolUse;
    const isSaid = streamed === '' || invalidInput !== undefined || says(streamed, input);
    return [
      ...start,
      ...(streamed === '' ? deltaOf(invalidInput ?? written(input)) : []),
      {
        type: 'toolInput',
        by,
        id,
        name,
        input: inputOf(toolUse),
        isEdited: !isSaid || name !== shownName,
      },
    ];
  };
  const toolUse: ShownTool['toolUse'] = (use) => {
    const before = told;
    if (hasEnded || (before?.name === use.name && before.input === use.input)) return [];
    told = use;
    return before === undefined
      ? whole(use)
      : [{ type: 'toolEdit', by, id, name: nameOf(use), input: inputOf(use), isEdited: true }];
  };
  const end: ShownTool['end'] = (outcome) => {
    const last = outcome.status === 'notRun' ? [] : toolUse(outcome.event.toolUse);
    if (hasEnded || shownName === '') return [];
    hasEnded = true;
    return [...last, { type: 'toolEnd', by, id, isWhole: told !== undefined, outcome }];
  };
  return {
    id,
    toolUse,
    end,
    chunk: (name, delta) => {
      const start = named(name);
      json.push(delta);
      return [...start, ...(shownName === '' ? [] : deltaOf(delta))];
    },
    progress: (event) => {
      hasProgress = true;
      return [...toolUse(event.toolUse), { type: 'toolProgress', by, id, value: event.value }];
    },
    suspend: (use) => {
      isSuspended = true;
      const parts = toolUse(use);
      if (!hasProgress) return parts;
      return [...parts, { type: 'toolReset', by, id, name: nameOf(use), input: inputOf(use) }];
    },
    close: () => (isSuspended ? [] : end({ status: 'notRun' })),
  };
};

const nameOf = ({ name }: ToolUseBlock): string => (name === '' ? 'unknown' : name);

const inputOf = ({ input, invalidInput }: ToolUseBlock): unknown => invalidInput ?? input;

/** An interceptor may have put anything into an input. */
const written = (input: unknown): string => {
  try {
    return JSON.stringify(input);
  } catch {
    return '{}';
  }
};

const says = (text: string, input: unknown): boolean =>
  written(parsedJson(text)) === written(input);
