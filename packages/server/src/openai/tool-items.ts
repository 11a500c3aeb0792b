import { textOf } from 'millrace';
import { isForClient } from '../inbound.js';
import type { Masks } from '../masks.js';
import type { CallEnd, Part, PartOf, ToolOutcome } from '../parts/part.js';
import { plainJson } from '../plain-json.js';
import { denied, notRun } from '../tool-result.js';
import type { AskedFor } from './asked-for.js';
import type { Asking } from './asks.js';
import {
  endItem,
  type OutputItem,
  type OutputItems,
  placeOfItem,
  type Unnumbered,
  voidItem,
} from './output-items.js';

export type ToolCall = Pick<PartOf<'toolInput' | 'toolEdit'>, 'id' | 'name' | 'input'>;

/** The tool calls of the agent, as items of the output of a response. */
export interface ToolItems {
  start(part: PartOf<'toolStart'>): void;
  /** Shows the arguments of a tool call, or edits them. */
  input(toolCall: ToolCall): readonly Unnumbered[];
  end(part: PartOf<'toolEnd'>): readonly Unnumbered[];
  /** Takes a tool call that waits for its client out of the output: it is a function call at the end. */
  suspend(id: string): readonly Unnumbered[];
  /** Adds the approval requests that the response ends with, and takes the open tool calls out of the output. */
  ask(): readonly Unnumbered[];
  /** Processes the parts that belong to earlier responses. */
  readonly note: (part: Part) => void;
  /** A tool call of an earlier response that has not run there: it waited for the decisions. */
  earlier(id: string): ToolCall | undefined;
  /** A tool call whose question the response begins with, as it was decided. */
  decided(id: string): ToolCall | undefined;
}

interface ToolItemOptions {
  readonly model: string;
  readonly masks: Masks;
  readonly asking: Asking | undefined;
}

export const createToolItems = (
  output: OutputItems,
  { model, masks, asking }: ToolItemOptions,
  request: { readonly asked: AskedFor },
): ToolItems => {
  const open = new Map<string, OutputItem>();
  const earlier = new Map<string, ToolCall>();
  const messageIds = new Map<string, string>();
  const closed = (id: string): OutputItem | undefined => {
    const item = open.get(id);
    open.delete(id);
    return item;
  };
  const start: ToolItems['start'] = ({ id, messageId }) => {
    messageIds.set(id, messageId);
  };
  const suspend: ToolItems['suspend'] = (id) => {
    const item = closed(id);
    return item === undefined ? [] : [voidItem(item)];
  };
  const input: ToolItems['input'] = (toolCall) => {
    const { id, name } = toolCall;
    const known = open.get(id);
    if (known !== undefined) known.fields = { ...known.fields, ...argumentsOf(toolCall) };
    if (known !== undefined || isOfClient(name, request.asked)) return [];
    const [item, added] = output.add('mcp', messageIds.get(id) ?? '', {
      ...{ type: 'mcp_call', status: 'in_progress', arguments: '' },
      ...{ name, server_label: model, output: null, error: null },
      approval_request_id: asking?.decidedOn(id)?.itemId ?? null,
    });
    open.set(id, item);
    return [added, ...argumentEvents(item, argumentsOf(toolCall))];
  };
  return {
    start,
    input,
    suspend,
    ask: () => {
      if (asking?.requests === undefined) return [];
      return [...[...open.keys()].flatMap(suspend), ...addRequests(output, asking.requests)];
    },
    end: ({ id, outcome }) => {
      const item = closed(id);
      if (item === undefined) return [];
      const [event, last] = outcomeOf(outcome, masks);
      return [{ type: event, ...placeOfItem(item) }, endItem(item, last)];
    },
    note: (part) => {
      if (part.type === 'toolStart') start(part);
      if (part.type === 'toolInput' || part.type === 'toolEdit') earlier.set(part.id, part);
      if (part.type === 'toolEnd') earlier.delete(part.id);
    },
    earlier: (id) => (open.has(id) ? undefined : earlier.get(id)),
    decided: (id) => {
      const question = asking?.decidedOn(id);
      return question && { ...question.toolCall, id };
    },
  };
};

/** The tools of the client get function calls instead. */
const isOfClient = (name: string, { tools = [] }: AskedFor): boolean =>
  tools.some((it) => it.name === name);

const argumentsOf = ({ input }: ToolCall): { readonly arguments: string } => ({
  arguments: typeof input === 'string' ? input : JSON.stringify(plainJson(input)),
});

const argumentEvents = (
  item: OutputItem,
  given: ReturnType<typeof argumentsOf>,
): readonly Unnumbered[] => {
  item.fields = { ...item.fields, ...given };
  const place = placeOfItem(item);
  return [
    { type: 'response.mcp_call.in_progress', ...place },
    { type: 'response.mcp_call_arguments.delta', ...place, delta: given.arguments },
    { type: 'response.mcp_call_arguments.done', ...place, ...given },
  ];
};

const addRequests = (output: OutputItems, requests: readonly object[]): readonly Unnumbered[] =>
  requests.flatMap((request) => {
    const [item, added] = output.add('mcpr', '', request);
    return [added, endItem(item, {})];
  });

const outcomeOf = (outcome: ToolOutcome, masks: Masks): readonly [event: string, last: object] => {
  const failed = (error: string) =>
    ['response.mcp_call.failed', { status: 'failed', error }] as const;
  switch (outcome.status) {
    case 'done': {
      const output = textOf(outcome.event.result);
      return ['response.mcp_call.completed', { status: 'completed', output }];
    }
    case 'failed':
      return failed(masks.toolError(outcome.event));
    case 'denied':
      return failed(denied);
    case 'notRun':
      return failed(notRun);
  }
};

/** Adds the tool calls that the client answers, as function calls. */
export const addFunctionCalls = (output: OutputItems, end: CallEnd): readonly Unnumbered[] => {
  const suspensions = end.status === 'replied' ? (end.reply.suspensions ?? []) : [];
  return suspensions.filter(isForClient).flatMap(({ toolCall }) => {
    const { id: call_id, name, input, invalidInput } = toolCall;
    const text = invalidInput ?? JSON.stringify(input);
    const fields = { type: 'function_call', status: 'in_progress', call_id, name, arguments: '' };
    const [item, added] = output.add('fc', '', fields);
    const event = 'response.function_call_arguments';
    return [
      added,
      { type: `${event}.delta`, ...placeOfItem(item), delta: text },
      { type: `${event}.done`, ...placeOfItem(item), name, arguments: text },
      endItem(item, { status: 'completed', arguments: text }),
    ];
  });
};
