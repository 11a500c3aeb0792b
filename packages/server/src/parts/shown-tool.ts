import type { EventOf, ToolCallBlock } from '@millrace/core';
import { parsedJson } from '@millrace/core/values';
import type { Part, CallRef, ToolOutcome } from './part.js';

/** The state of one tool call in the client. */
export interface ShownTool {
  /** Its id in the client. */
  readonly id: string;
  /** Streams a part of its arguments. */
  chunk(name: string, delta: string): readonly Part[];
  /** Shows the complete tool call, or an edited one. */
  toolCall(toolCall: ToolCallBlock): readonly Part[];
  progress(event: EventOf<'actingChunk'>): readonly Part[];
  /** Suspends it: another call will bring the result. */
  suspend(toolCall: ToolCallBlock): readonly Part[];
  /** Ends it as not run, unless it is suspended. */
  close(): readonly Part[];
  /** Ends it, if it was shown and has not ended. */
  end(outcome: ToolOutcome): readonly Part[];
}

export const createShownTool = (by: CallRef, messageId: string, localId: string): ShownTool => {
  const id = `${messageId}/${localId}`;
  const json: string[] = [];
  let shownName = '';
  /** The complete tool call as it was last shown. */
  let lastShown: ToolCallBlock | undefined;
  /** An approver and the result may show the same edit. */
  let lastEdit: ToolCallBlock | undefined;
  let hasProgress = false;
  let isSuspended = false;
  let hasEnded = false;

  const deltaOf = (delta: string): readonly Part[] =>
    delta === '' ? [] : [{ type: 'toolDelta', by, id, delta }];
  /** Clients need the name first, so arguments that arrived before the name follow it. */
  const startOnce = (name: string): readonly Part[] => {
    if (shownName !== '' || name === '') return [];
    shownName = name;
    return [{ type: 'toolStart', by, id, name, messageId }, ...deltaOf(json.join(''))];
  };
  const complete = (toolCall: ToolCallBlock): readonly Part[] => {
    const name = nameOf(toolCall);
    const start = startOnce(name);
    const streamed = json.join('');
    const { input, invalidInput } = toolCall;
    const isUnchanged = streamed === '' || invalidInput !== undefined || isJsonOf(streamed, input);
    return [
      ...start,
      ...(streamed === '' ? deltaOf(invalidInput ?? stringify(input)) : []),
      {
        type: 'toolInput',
        by,
        id,
        name,
        input: inputOf(toolCall),
        isEdited: !isUnchanged || name !== shownName,
      },
    ];
  };
  const toolCall: ShownTool['toolCall'] = (use) => {
    const before = lastShown;
    if (hasEnded || (before?.name === use.name && before.input === use.input)) return [];
    lastShown = use;
    if (before === undefined) return complete(use);
    if (lastEdit !== undefined && isShownAs(lastEdit, use)) return [];
    lastEdit = use;
    return [{ type: 'toolEdit', by, id, name: nameOf(use), input: inputOf(use), isEdited: true }];
  };
  const end: ShownTool['end'] = (outcome) => {
    const last = outcome.status === 'notRun' ? [] : toolCall(outcome.event.toolCall);
    if (hasEnded || shownName === '') return [];
    hasEnded = true;
    return [...last, { type: 'toolEnd', by, id, isWhole: lastShown !== undefined, outcome }];
  };
  return {
    id,
    toolCall,
    end,
    chunk: (name, delta) => {
      const start = startOnce(name);
      json.push(delta);
      return [...start, ...(shownName === '' ? [] : deltaOf(delta))];
    },
    progress: (event) => {
      hasProgress = true;
      return [...toolCall(event.toolCall), { type: 'toolProgress', by, id, value: event.value }];
    },
    suspend: (use) => {
      isSuspended = true;
      const parts = toolCall(use);
      if (!hasProgress) return parts;
      return [...parts, { type: 'toolReset', by, id, name: nameOf(use), input: inputOf(use) }];
    },
    close: () => (isSuspended ? [] : end({ status: 'notRun' })),
  };
};

const nameOf = ({ name }: ToolCallBlock): string => (name === '' ? 'unknown' : name);

const inputOf = ({ input, invalidInput }: ToolCallBlock): unknown => invalidInput ?? input;

const isShownAs = (one: ToolCallBlock, other: ToolCallBlock): boolean =>
  one.name === other.name &&
  one.invalidInput === other.invalidInput &&
  stringify(one.input) === stringify(other.input);

/** An interceptor may have changed the input to something that JSON cannot represent. */
const stringify = (input: unknown): string => {
  try {
    return JSON.stringify(input);
  } catch {
    return '{}';
  }
};

const isJsonOf = (text: string, input: unknown): boolean =>
  stringify(parsedJson(text)) === stringify(input);
