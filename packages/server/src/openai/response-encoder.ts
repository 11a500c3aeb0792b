import { type AgentEvent, isEvent, noUsage, type Usage } from 'millrace';
import type { Masks } from '../masks.js';
import type { CallEnd, Notice, Part, PartOf } from '../parts/part.js';
import { answerText, type AskedFor } from './asked-for.js';
import type { Asking } from './asks.js';
import { createOutputItems, type OutputItems, type Unnumbered } from './output-items.js';
import { codeOf, fixedFields, usageOf } from './response-fields.js';
import { placeOf, responseIdOf, type ResponseRef } from './response-ids.js';
import { costField, secondsNow, shortfallOf } from './settings.js';
import { createTextItems } from './text-items.js';
import { addFunctionCalls, createToolItems, type ToolCall } from './tool-items.js';

export interface EncoderOptions {
  readonly model: string;
  readonly masks: Masks;
  /** The id of the conversation; `undefined` for a call without one. */
  readonly conversation: string | undefined;
  /** `undefined` without approvals. */
  readonly asking: Asking | undefined;
  /** The decisions before this response, as in its id. */
  readonly decided: ResponseRef['decided'];
  /** The ids of messages that are known to be discarded. Their content is left out. Each attempt has its own id. */
  readonly discarded: readonly string[];
}

/** An event of a response. */
export interface ResponseEvent {
  readonly type: string;
  /** The same whenever the response is read, from the beginning or from its middle. */
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

/** Encodes a call as a response and its events. */
export interface ResponseEncoder {
  /** Processes an event before its parts. Returns whether more events may follow: none do after approval requests. */
  readonly note: (event: AgentEvent) => boolean;
  take(part: Part): readonly ResponseEvent[];
  /** The response so far. */
  readonly response: () => Readonly<Record<string, unknown>>;
  /** Whether it has ended with approval requests. */
  readonly hasAsked: () => boolean;
}

/** Greater than the number of response events that one event of a call can cause. */
const mostPerEvent = 1_000;

export const createResponseEncoder = (options: EncoderOptions): ResponseEncoder => {
  const { asking } = options;
  const state = createState(options);
  const items = createOutputItems(state.place, options.discarded);
  const parts = createPartEncoder(options, state, items);
  let hasBegun = false;
  let sequence = 0;

  const begun = (): readonly Unnumbered[] => {
    if (hasBegun) return [];
    hasBegun = true;
    return ['response.created', 'response.in_progress'].map((type) => ({
      type,
      response: state.response(items),
    }));
  };
  const numbered = (event: Unnumbered): ResponseEvent => {
    sequence += 1;
    return { ...event, sequence_number: sequence - 1 };
  };
  return {
    response: () => state.response(items),
    hasAsked: () => asking?.requests !== undefined,
    note: (event) => {
      // Not consecutive: an event has the same numbers whenever it is read, although a crash takes back some events.
      sequence = event.seq * mostPerEvent;
      return state.note(event);
    },
    take: (part) => {
      if (part.by.parentId !== undefined || part.type === 'callStart') return [];
      if (asking?.hasStarted === false) {
        parts.skip(part);
        return [];
      }
      // Events are omitted after they have got their numbers, so the numbers of the others stay the same.
      return [...begun(), ...parts.encode(part)]
        .map(numbered)
        .filter((event) => !('isOmitted' in event));
    },
  };
};

type Status = 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

/** How a response has ended. */
interface Ending {
  readonly status: Status;
  readonly error?: object;
  readonly incomplete_details?: object;
}

/** The fields of a response that are not its output. */
interface ResponseState {
  readonly asked: AskedFor;
  /** Returns whether there may be more events. */
  readonly note: (event: AgentEvent) => boolean;
  end(ending: Ending, usage: Usage, end: CallEnd): void;
  /** The prefix of the ids of its items, after the kind of the item. */
  readonly place: () => string;
  response(output: OutputItems): Readonly<Record<string, unknown>>;
}

const createState = ({ model, asking, conversation, decided }: EncoderOptions): ResponseState => {
  let asked: AskedFor = {};
  let callId = '';
  let times: readonly [begin: number, end: number] = [0, 0];
  let ended: object = { status: 'in_progress' };
  return {
    get asked() {
      return asked;
    },
    place: () => placeOf({ callId, decided }),
    note: (event) => {
      if (callId === '') callId = event.callId;
      if (isEvent(event, 'openAiRequest') && event.callId === callId) ({ asked } = event);
      asking?.note(event);
      if (asking?.hasStarted === false) return true;
      const seconds = Math.floor(event.at / 1_000);
      times = [times[0] === 0 ? seconds : times[0], seconds];
      return asking?.requests === undefined;
    },
    end: (ending, usage, end) => {
      const spent = usageOf(usage, asking?.spent ?? noUsage);
      // The cost is that of a call. A response that a decision ends or begins is a part of one.
      const isCall = decided.length === 0 && asking?.requests === undefined;
      const cost = isCall ? costField(end) : {};
      ended = { ...ending, usage: { ...spent, ...cost }, completed_at: times[1] };
    },
    response: (output) => ({
      id: responseIdOf({ callId, decided }),
      ...fixedFields,
      created_at: times[0] === 0 ? secondsNow() : times[0],
      model,
      store: conversation !== undefined,
      ...asked.repeated,
      ...(decided.length > 0 && {
        previous_response_id: responseIdOf({ callId, decided: decided.slice(0, -1) }),
      }),
      conversation: conversation === undefined ? null : { id: conversation },
      output: output.shown(),
      ...ended,
    }),
  };
};

/** Encodes the parts of a response, without numbers. */
const createPartEncoder = (options: EncoderOptions, state: ResponseState, items: OutputItems) => {
  const { asking, masks } = options;
  const texts = createTextItems(items);
  const tools = createToolItems(items, options, state);
  const toolInput = (toolCall: ToolCall | undefined): readonly Unnumbered[] =>
    toolCall === undefined ? [] : [...texts.settle(), ...tools.input(toolCall)];
  const notice = (it: Notice): readonly Unnumbered[] => {
    if (it.name === 'suspended') return tools.suspend(it.toolCallId);
    return it.name === 'approvalDecided' ? toolInput(tools.decided(it.toolCallId)) : [];
  };
  const callEnd = ({ end, usage }: PartOf<'callEnd'>): readonly Unnumbered[] => {
    const events = [
      ...texts.settle(),
      ...texts.add(formedText(end, state.asked)),
      ...addFunctionCalls(items, end),
      ...tools.ask(),
    ];
    const ending = asking?.requests === undefined ? endingOf(end, masks) : completed;
    if (ending === undefined) return events;
    state.end(ending, usage, end);
    // There is no event for a response that was cancelled.
    const type = `response.${ending.status === 'cancelled' ? 'incomplete' : ending.status}`;
    return [...events, { type, response: state.response(items) }];
  };
  const encode = (part: Part): readonly Unnumbered[] => {
    switch (part.type) {
      case 'stepStart':
        return texts.settle();
      case 'blockStart':
        return part.kind === 'text' && state.asked.format !== undefined ? [] : texts.start(part);
      case 'blockDelta':
        return texts.delta(part.delta);
      case 'blockEnd':
        return texts.end();
      case 'source':
        return texts.source(part.citation);
      case 'voided':
        texts.discard();
        return items.discard(part.messageId);
      case 'toolStart':
        tools.start(part);
        return [];
      case 'toolInput':
      case 'toolEdit':
        return toolInput(part);
      case 'toolEnd':
        if (asking?.requests !== undefined) return [];
        return [...toolInput(tools.earlier(part.id)), ...tools.end(part)];
      case 'notice':
        return notice(part.notice);
      case 'callEnd':
        return callEnd(part);
      default:
        return [];
    }
  };
  return { encode, skip: tools.note };
};

/** The text of structured output, which is known only at the end; empty for other answers. */
const formedText = (end: CallEnd, asked: AskedFor): string =>
  asked.format === undefined || end.status !== 'replied' ? '' : answerText(end.reply, asked);

const completed: Ending = { status: 'completed' };

/** `undefined` if the call was cut: its response is continued later. */
const endingOf = (end: CallEnd, masks: Masks): Ending | undefined => {
  switch (end.status) {
    case 'aborted':
      return undefined;
    case 'failed':
      return {
        status: 'failed',
        error: { code: codeOf(end.error), message: masks.error(end.error) },
      };
    case 'replied': {
      const shortfall = shortfallOf(end.reply);
      if (end.reply.reason === 'interrupted') return { status: 'cancelled' };
      if (shortfall === undefined) return completed;
      const reason = shortfall === 'length' ? 'max_output_tokens' : shortfall;
      return { status: 'incomplete', incomplete_details: { reason } };
    }
  }
};
