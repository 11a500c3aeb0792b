import { type AgentEvent, type Citation, isEvent, noUsage, textOf } from '@millrace/core';
import { isForClient } from '../inbound.js';
import type { Masks } from '../masks.js';
import type { Part, PartOf } from '../parts/part.js';
import { plainJson } from '../plain-json.js';
import { denied, notRun } from '../tool-result.js';
import { answerText, type AskedFor } from './asked-for.js';
import type { Asking } from './asks.js';
import { placeOf, responseIdOf, type ResponseRef } from './response-ids.js';
import {
  annotationOf,
  codeOf,
  fixedFields,
  outputText,
  summaryText,
  usageOf,
} from './response-fields.js';
import { secondsNow, shortfallOf } from './settings.js';

export interface EncoderOptions {
  readonly model: string;
  readonly masks: Masks;
  /** The id of the conversation; `undefined` for a call without one. */
  readonly conversation: string | undefined;
  /** `undefined` without approvals. */
  readonly asking: Asking | undefined;
  /** As in its id. */
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
  /** Learns from an event, before its parts. Returns whether there may be more: not after approval requests. */
  note(event: AgentEvent): boolean;
  take(part: Part): readonly ResponseEvent[];
  /** The response so far. */
  readonly response: () => Readonly<Record<string, unknown>>;
  /** Whether it has ended with approval requests. */
  readonly hasAsked: () => boolean;
}

type Status = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

/** An item of the output. */
interface Shown {
  readonly index: number;
  readonly id: string;
  /** The message of the agent that it belongs to. */
  readonly messageId: string;
  /** Its content is left out, because the message was discarded later. */
  readonly isOmitted: boolean;
  item: Readonly<Record<string, unknown>>;
  readonly text: string[];
  readonly annotations: object[];
  /** The end of the text that an annotation supports, in characters. */
  citedUntil: number;
  /** Whether the output of the response has it. */
  isVoid: boolean;
}

/** More than an event of a call has events of the response. */
const mostPerEvent = 1_000;

type Unnumbered = Readonly<Record<string, unknown>> & { readonly type: string };

export const createResponseEncoder = (options: EncoderOptions): ResponseEncoder => {
  const { model, masks, asking, conversation, decided, discarded } = options;
  const items: Shown[] = [];
  const tools = new Map<string, Shown>();
  /** The tool calls of earlier responses that have not run: they waited for the decisions. */
  const waitingTools = new Map<string, PartOf<'toolInput' | 'toolEdit'>>();
  /** The messages of tool calls. */
  const messageIds = new Map<string, string>();
  let asked: AskedFor = {};
  let callId = '';
  let times: readonly [begin: number, end: number] = [0, 0];
  let sequence = 0;
  let hasBegun = false;
  /** Text or thoughts that have ended, and may still be taken back. */
  let waiting: Shown | undefined;
  let open: Shown | undefined;
  let ended: Readonly<Record<string, unknown>> & { readonly status: Status } = {
    status: 'in_progress',
  };

  const hasAsked = (): boolean => asking?.requests !== undefined;
  const response = () => ({
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
    output: items.filter(({ isVoid }) => !isVoid).map(({ item }) => item),
    ...ended,
  });

  const numbered = (event: Unnumbered): ResponseEvent => {
    sequence += 1;
    return { ...event, sequence_number: sequence - 1 };
  };
  const begun = (): readonly Unnumbered[] => {
    if (hasBegun) return [];
    hasBegun = true;
    return ['response.created', 'response.in_progress'].map((type) => ({
      type,
      response: response(),
    }));
  };

  const at = ({ id, index }: Shown) => ({ item_id: id, output_index: index });
  const add = (prefix: string, messageId: string, item: object): readonly [Shown, Unnumbered] => {
    const index = items.length;
    const id = `${prefix}_${placeOf({ callId, decided })}_${index}`;
    const isOmitted = discarded.includes(messageId);
    const shown: Shown = {
      index,
      id,
      messageId,
      isOmitted,
      item: { id, ...item },
      text: [],
      annotations: [],
      citedUntil: 0,
      isVoid: false,
    };
    items.push(shown);
    return [shown, { type: 'response.output_item.added', output_index: index, item: shown.item }];
  };
  const done = (shown: Shown, fields: object): Unnumbered => {
    shown.item = { ...shown.item, ...fields };
    return { type: 'response.output_item.done', output_index: shown.index, item: shown.item };
  };
  /** Ends text or thoughts that are no longer taken back right away. */
  const settled = (): readonly Unnumbered[] => {
    const shown = waiting;
    waiting = undefined;
    if (shown === undefined) return [];
    const text = shown.text.join('');
    return [
      done(
        shown,
        shown.item['type'] === 'message'
          ? { status: 'completed', content: [outputText(text, shown.annotations)] }
          : { status: 'completed', summary: [summaryText(text)] },
      ),
    ];
  };

  const blockStart = ({ kind, messageId }: PartOf<'blockStart' | 'blockDelta' | 'blockEnd'>) => {
    const before = settled();
    const isText = kind === 'text';
    const [shown, added] = isText
      ? add('msg', messageId, {
          type: 'message',
          role: 'assistant',
          status: 'in_progress',
          content: [],
        })
      : add('rs', messageId, { type: 'reasoning', status: 'in_progress', summary: [] });
    open = shown;
    const part = isText ? outputText('') : summaryText('');
    const type = isText ? 'response.content_part.added' : 'response.reasoning_summary_part.added';
    return [...before, added, content(shown, { type, part })];
  };
  const blockDelta = (delta: string): readonly Unnumbered[] => {
    if (open === undefined) return [];
    open.text.push(delta);
    const isText = open.item['type'] === 'message';
    const type = isText ? 'response.output_text.delta' : 'response.reasoning_summary_text.delta';
    return [content(open, { type, delta, ...(isText && { logprobs: [] }) })];
  };
  const blockEnd = (): readonly Unnumbered[] => {
    if (open === undefined) return [];
    waiting = open;
    open = undefined;
    const text = waiting.text.join('');
    const [what, part] =
      waiting.item['type'] === 'message'
        ? (['response.output_text', 'response.content_part'] as const)
        : (['response.reasoning_summary_text', 'response.reasoning_summary_part'] as const);
    const isText = what === 'response.output_text';
    return [
      content(waiting, { type: `${what}.done`, text, ...(isText && { logprobs: [] }) }),
      content(waiting, {
        type: `${part}.done`,
        part: isText ? outputText(text, waiting.annotations) : summaryText(text),
      }),
    ];
  };
  /** By default, a source supports the text since the one before. */
  const source = (citation: Citation): readonly Unnumbered[] => {
    const shown = open ?? waiting;
    if (shown?.item['type'] !== 'message') return [];
    const to = shown.text.join('').length;
    const annotation = annotationOf(citation, { from: shown.citedUntil, to });
    if (annotation === undefined) return [];
    shown.citedUntil = to;
    const annotation_index = shown.annotations.push(annotation) - 1;
    const type = 'response.output_text.annotation.added';
    return [content(shown, { type, annotation_index, annotation })];
  };
  const content = (shown: Shown, event: Unnumbered): Unnumbered => ({
    ...event,
    ...at(shown),
    ...(shown.item['type'] === 'message' ? { content_index: 0 } : { summary_index: 0 }),
    ...(shown.isOmitted && { isOmitted: true }),
  });
  /** Discarded items stay in their places, empty: clients find the others by their index. */
  const voided = (messageId: string): readonly Unnumbered[] => {
    waiting = undefined;
    return items
      .filter((shown) => shown.messageId === messageId && !shown.isVoid)
      .map((shown) => {
        shown.isVoid = true;
        const { type } = shown.item;
        const emptied = type === 'message' ? { content: [] } : { summary: [] };
        return done(shown, { status: 'incomplete', ...(type === 'mcp_call' ? {} : emptied) });
      });
  };

  const isOfClient = (name: string): boolean =>
    asked.tools?.some((it) => it.name === name) === true;
  const toolInput = ({
    id,
    name,
    input,
  }: Pick<PartOf<'toolInput' | 'toolEdit'>, 'id' | 'name' | 'input'>): readonly Unnumbered[] => {
    const before = settled();
    const text = typeof input === 'string' ? input : JSON.stringify(plainJson(input));
    const known = tools.get(id);
    if (known !== undefined) known.item = { ...known.item, arguments: text };
    if (known !== undefined || isOfClient(name)) return before;
    const question = asking?.decidedOn(id);
    const [shown, added] = add('mcp', messageIds.get(id) ?? '', {
      type: 'mcp_call',
      status: 'in_progress',
      arguments: '',
      ...{ name, server_label: model, output: null, error: null },
      approval_request_id: question?.itemId ?? null,
    });
    tools.set(id, shown);
    shown.item = { ...shown.item, arguments: text };
    return [
      ...before,
      added,
      { type: 'response.mcp_call.in_progress', ...at(shown) },
      { type: 'response.mcp_call_arguments.delta', ...at(shown), delta: text },
      { type: 'response.mcp_call_arguments.done', ...at(shown), arguments: text },
    ];
  };
  const toolEnd = (part: PartOf<'toolEnd'>): readonly Unnumbered[] => {
    if (hasAsked()) return [];
    const { id } = part;
    const before = tools.has(id) ? undefined : waitingTools.get(id);
    return [...(before === undefined ? [] : toolInput(before)), ...toolOutcome(part)];
  };
  const toolOutcome = ({ id, outcome }: PartOf<'toolEnd'>): readonly Unnumbered[] => {
    const shown = tools.get(id);
    tools.delete(id);
    if (shown === undefined) return [];
    if (outcome.status === 'done') {
      const output = textOf(outcome.event.result);
      return [
        { type: 'response.mcp_call.completed', ...at(shown) },
        done(shown, { status: 'completed', output }),
      ];
    }
    const error =
      outcome.status === 'failed'
        ? masks.toolError(outcome.event)
        : outcome.status === 'denied'
          ? denied
          : notRun;
    return [
      { type: 'response.mcp_call.failed', ...at(shown) },
      done(shown, { status: 'failed', error }),
    ];
  };
  /** The tool is one that the client answers: it gets a function call at the end. */
  const suspended = (id: string): readonly Unnumbered[] => {
    const shown = tools.get(id);
    tools.delete(id);
    if (shown === undefined) return [];
    shown.isVoid = true;
    return [done(shown, { status: 'incomplete' })];
  };

  const afterDecision = (id: string): readonly Unnumbered[] => {
    const question = asking?.decidedOn(id);
    return question === undefined ? [] : toolInput({ ...question.toolCall, id });
  };
  const approvalRequests = (requests: readonly object[]): readonly Unnumbered[] => [
    ...[...tools.keys()].flatMap(suspended),
    ...requests.flatMap((item) => {
      const [shown, added] = add('mcpr', '', item);
      return [added, done(shown, {})];
    }),
  ];

  const functionCalls = (part: PartOf<'callEnd'>): readonly Unnumbered[] => {
    const { end } = part;
    const suspensions = end.status === 'replied' ? (end.reply.suspensions ?? []) : [];
    return suspensions.filter(isForClient).flatMap(({ toolCall }) => {
      const { id: call_id, name, input, invalidInput } = toolCall;
      const text = invalidInput ?? JSON.stringify(input);
      const item = { type: 'function_call', status: 'in_progress', call_id, name, arguments: '' };
      const [shown, added] = add('fc', '', item);
      const of = 'response.function_call_arguments';
      return [
        added,
        { type: `${of}.delta`, ...at(shown), delta: text },
        { type: `${of}.done`, ...at(shown), name, arguments: text },
        done(shown, { status: 'completed', arguments: text }),
      ];
    });
  };
  /** The answer in its form, which is known at the end. */
  const formed = (part: PartOf<'callEnd'>): readonly Unnumbered[] => {
    const { end } = part;
    const text = end.status === 'replied' ? answerText(end.reply, asked) : '';
    if (asked.format === undefined || text === '') return [];
    return [
      ...blockStart({ ...part, type: 'blockStart', kind: 'text', id: '', messageId: '' }),
      ...blockDelta(text),
      ...blockEnd(),
      ...settled(),
    ];
  };
  const callEnd = (part: PartOf<'callEnd'>): readonly Unnumbered[] => {
    const { end, usage } = part;
    const before = [...settled(), ...formed(part), ...functionCalls(part)];
    const whole = { usage: usageOf(usage, asking?.spent ?? noUsage), completed_at: times[1] };
    if (asking?.requests !== undefined) {
      const requests = approvalRequests(asking.requests);
      ended = { status: 'completed', ...whole };
      return [...before, ...requests, { type: 'response.completed', response: response() }];
    }
    if (end.status === 'aborted') return before;
    if (end.status === 'failed') {
      const error = { code: codeOf(end.error), message: masks.error(end.error) };
      ended = { status: 'failed', error, ...whole };
      return [...before, { type: 'response.failed', response: response() }];
    }
    const shortfall = shortfallOf(end.reply);
    if (end.reply.reason === 'interrupted') {
      ended = { status: 'cancelled', ...whole };
    } else if (shortfall !== undefined) {
      const reason = shortfall === 'length' ? 'max_output_tokens' : shortfall;
      ended = { status: 'incomplete', incomplete_details: { reason }, ...whole };
    } else {
      ended = { status: 'completed', ...whole };
    }
    // There is no event for a response that was cancelled.
    const type = ended.status === 'completed' ? 'response.completed' : 'response.incomplete';
    return [...before, { type, response: response() }];
  };

  const encode = (part: Part): readonly Unnumbered[] => {
    switch (part.type) {
      case 'stepStart':
        return settled();
      case 'blockStart':
        return part.kind === 'text' && asked.format !== undefined ? [] : blockStart(part);
      case 'blockDelta':
        return blockDelta(part.delta);
      case 'blockEnd':
        return blockEnd();
      case 'source':
        return source(part.citation);
      case 'voided':
        return voided(part.messageId);
      case 'toolStart':
        messageIds.set(part.id, part.messageId);
        return [];
      case 'toolInput':
      case 'toolEdit':
        return toolInput(part);
      case 'toolEnd':
        return toolEnd(part);
      case 'notice': {
        const { notice } = part;
        if (notice.name === 'approvalDecided') return afterDecision(notice.toolCallId);
        return notice.name === 'suspended' ? suspended(notice.toolCallId) : [];
      }
      case 'callEnd':
        return callEnd(part);
      default:
        return [];
    }
  };

  return {
    response,
    hasAsked,
    note: (event) => {
      // Not consecutive: an event has the same numbers whenever it is read, although a crash takes back some events.
      sequence = event.seq * mostPerEvent;
      if (callId === '') callId = event.callId;
      if (isEvent(event, 'openAiRequest') && event.callId === callId) ({ asked } = event);
      asking?.note(event);
      if (asking?.hasStarted === false) return true;
      const seconds = Math.floor(event.at / 1_000);
      times = [times[0] === 0 ? seconds : times[0], seconds];
      return !hasAsked();
    },
    take: (part) => {
      if (part.by.parentId !== undefined || part.type === 'callStart') return [];
      // Left out after they have got their numbers, so these stay the same.
      if (asking?.hasStarted === false) {
        if (part.type === 'toolStart') messageIds.set(part.id, part.messageId);
        if (part.type === 'toolInput' || part.type === 'toolEdit') waitingTools.set(part.id, part);
        if (part.type === 'toolEnd') waitingTools.delete(part.id);
        return [];
      }
      return [...begun(), ...encode(part)].map(numbered).filter((event) => !('isOmitted' in event));
    },
  };
};
