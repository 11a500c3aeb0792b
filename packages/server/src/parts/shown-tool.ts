import type { EventOf, ToolCallBlock } from 'millrace';
import { isSameJson, parsedJson } from 'millrace/values';
import { plainJson } from '../plain-json.js';
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
  const streamed = createStreamedArguments(by, messageId, id);
  /** The complete tool call as it was last shown. Events from a store contain equal copies. */
  let lastShown: ShownCall | undefined;
  let lastUse: ToolCallBlock | undefined;
  let hasProgress = false;
  let isSuspended = false;
  let hasEnded = false;

  const toolCall: ShownTool['toolCall'] = (use) => {
    const before = lastShown;
    if (hasEnded || lastUse === use) return [];
    lastUse = use;
    const shown = shownCallOf(use);
    if (before !== undefined && isSameCall(before, shown)) return [];
    lastShown = shown;
    if (before === undefined) return streamed.complete(shown, use.invalidInput);
    return [{ type: 'toolEdit', by, id, ...shown, isEdited: true }];
  };
  const end: ShownTool['end'] = (outcome) => {
    const last = outcome.status === 'notRun' ? [] : toolCall(outcome.event.toolCall);
    if (hasEnded || !streamed.hasName()) return [];
    hasEnded = true;
    return [...last, { type: 'toolEnd', by, id, isWhole: lastShown !== undefined, outcome }];
  };
  return {
    id,
    toolCall,
    end,
    chunk: streamed.chunk,
    progress: (event) => {
      hasProgress = true;
      return [...toolCall(event.toolCall), { type: 'toolProgress', by, id, value: event.value }];
    },
    suspend: (use) => {
      isSuspended = true;
      const parts = toolCall(use);
      if (!hasProgress) return parts;
      return [...parts, { type: 'toolReset', by, id, ...shownCallOf(use) }];
    },
    close: () => (isSuspended ? [] : end({ status: 'notRun' })),
  };
};

/** The name and the arguments of a tool call, which the model streams. */
const createStreamedArguments = (by: CallRef, messageId: string, id: string) => {
  const json: string[] = [];
  let shownName = '';
  const deltaOf = (delta: string): readonly Part[] =>
    delta === '' ? [] : [{ type: 'toolDelta', by, id, delta }];
  /** Clients need the name first, so arguments that arrived before the name follow it. */
  const startOnce = (name: string): readonly Part[] => {
    if (shownName !== '' || name === '') return [];
    shownName = name;
    return [{ type: 'toolStart', by, id, name, messageId }, ...deltaOf(json.join(''))];
  };
  return {
    hasName: () => shownName !== '',
    chunk: (name: string, delta: string): readonly Part[] => {
      const start = startOnce(name);
      json.push(delta);
      return [...start, ...(shownName === '' ? [] : deltaOf(delta))];
    },
    complete: ({ name, input }: ShownCall, invalidInput?: string): readonly Part[] => {
      const start = startOnce(name);
      const streamed = json.join('');
      const isUnchanged =
        streamed === '' || invalidInput !== undefined || isJsonOf(streamed, input);
      return [
        ...start,
        ...(streamed === '' ? deltaOf(invalidInput ?? JSON.stringify(input)) : []),
        { type: 'toolInput', by, id, name, input, isEdited: !isUnchanged || name !== shownName },
      ];
    },
  };
};

/** A tool call as JSON shows it. */
interface ShownCall {
  readonly name: string;
  readonly input: unknown;
}

const shownCallOf = ({ name, input, invalidInput }: ToolCallBlock): ShownCall => ({
  name: name === '' ? 'unknown' : name,
  input: plainJson(invalidInput ?? input),
});

/** Compares by value, since a store returns copies. */
const isSameCall = (one: ShownCall, other: ShownCall): boolean =>
  one.name === other.name && isSameJson(one.input, other.input);

const isJsonOf = (text: string, input: unknown): boolean =>
  isSameJson(plainJson(parsedJson(text)), input);
