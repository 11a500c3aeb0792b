// The requests of a run to models, their answers, and how each differs from the one before.
import type { ShownEvent } from '../protocol.js';
import { withoutKeys } from '../secrets.js';
import type { Fold } from './log.js';
import {
  anyFields,
  errorIn,
  type Fields,
  fieldsOf,
  messagesIn,
  stringOf,
  textIn,
  toolCallsIn,
} from './read-event.js';
import { isRequest, requestOf } from './whole-requests.js';

/** A request to a model. */
export interface ModelRequest {
  /** The entry of the request. */
  readonly position: number;
  readonly callId: string;
  readonly agent: string;
  readonly depth: number;
  readonly turn: number;
  /** The phase of a request beside the loop, such as `summary`; `undefined` for one of the loop. */
  readonly phase: string | undefined;
  readonly event: ShownEvent;
  /** The request before it of the same call and phase. */
  readonly before: ModelRequest | undefined;
  /** The model that it was sent to, if it is known. */
  model: string | undefined;
  /** The id of its mark, and whether it has ended. */
  markId: string | undefined;
  isOver: boolean;
  /** The request as the model got it, if layers have changed that of the event. */
  sent: object | undefined;
  answer: { readonly position: number; readonly event: ShownEvent } | undefined;
  /** The error of its last attempt, if there is no answer. Until it is over, another attempt follows. */
  failure: ReturnType<typeof errorIn> | undefined;
}

export interface Requests extends Fold {
  readonly list: readonly ModelRequest[];
  /** The last request of a call up to a position. */
  at(callId: string, position: number): ModelRequest | undefined;
}

const answers: Readonly<Record<string, string>> = {
  postReasoning: '',
  postSummary: 'summary',
  postPlanning: 'planning',
};

export const createRequests = (): Requests => {
  const list: ModelRequest[] = [];
  const last = new Map<string, ModelRequest>();
  const newest = new Map<string, ModelRequest>();
  const begin = (event: ShownEvent, position: number): void => {
    const { callId, agent, iteration: turn } = event;
    const phase = phaseOf(event);
    const key = `${callId} ${kindOf(phase)}`;
    const request: ModelRequest = {
      ...{ position, callId, agent: agent.at(-1) ?? '', depth: Math.max(0, agent.length - 1) },
      ...{
        turn,
        phase,
        event,
        before: last.get(key),
        model: undefined,
        markId: undefined,
        isOver: false,
        sent: undefined,
        answer: undefined,
        failure: undefined,
      },
    };
    list.push(request);
    last.set(key, request);
    newest.set(callId, request);
  };
  return {
    list,
    at: (callId, position) =>
      list.findLast((one) => one.callId === callId && one.position <= position),
    event: (event, _at, position) => {
      if (isRequest(event)) {
        begin(event, position);
        return;
      }
      const asked = modelAsked(event);
      const current = newest.get(event.callId);
      if (current !== undefined && asked !== '') current.model = asked;
      const { error } = anyFields(event);
      if (current !== undefined && failures.has(event.type)) {
        current.failure = errorIn(error);
        current.isOver ||= event.type === 'error';
      }
      const kind = Object.hasOwn(answers, event.type) ? answers[event.type] : undefined;
      const request = kind === undefined ? undefined : last.get(`${event.callId} ${kind}`);
      if (request !== undefined) request.answer = { position, event };
    },
    mark: (mark) => {
      const request = newest.get(mark.callId);
      if (mark.mark !== 'request' || request === undefined) return;
      request.isOver = mark.phase !== 'started';
      if (request.isOver) return;
      request.markId = mark.id;
      request.model = mark.model;
      request.sent = mark.sent;
    },
  };
};

/** The events that have the error of a request. */
const failures: ReadonlySet<string> = new Set(['error', 'modelRetry', 'modelFallback']);

/** The model that an event of its traffic names; else an empty string. */
const modelAsked = (event: ShownEvent): string => {
  const { type, model, to } = anyFields(event);
  if (type === 'modelFallback') return stringOf(to);
  return type === 'modelRetry' || type === 'modelWaiting' ? stringOf(model) : '';
};

const phaseOf = (event: ShownEvent): string | undefined => {
  if (event.type === 'preReasoning') return undefined;
  return event.type === 'preSummary' ? 'summary' : stringOf(anyFields(event)['phase']);
};

const kindOf = (phase: string | undefined): string =>
  phase === undefined ? '' : phase === 'summary' ? 'summary' : 'planning';

// ---------------------------------------------------------------- what is shown of it

/** A message of a request. */
export interface RequestMessage {
  readonly id: string;
  readonly role: string;
  readonly text: string;
  /** Whether the request before it did not have it, or had another one. */
  readonly isNew: boolean;
}

/** A tool that a request declares. */
export interface RequestTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: unknown;
  readonly isNew: boolean;
}

/** A request for a person to read, without keys. */
export interface RequestView {
  readonly system: string;
  /** The system prompt of the request before it, if that was another one. */
  readonly systemBefore: string | undefined;
  readonly messages: readonly RequestMessage[];
  /** How many of its messages, at its start, the request before it has too. */
  readonly same: number;
  /** Messages that the request before it had, and this one has not. */
  readonly removed: readonly RequestMessage[];
  readonly tools: readonly RequestTool[];
  readonly removedTools: readonly string[];
  /** The other options, as JSON, with `isNew` if they have changed. */
  readonly options: readonly {
    readonly name: string;
    readonly value: string;
    readonly isNew: boolean;
  }[];
}

/** The messages and options that the model got. */
export const contentOfRequest = ({ event, sent }: ModelRequest) => requestOf(sent ?? event);

/** Compares a request to the one before it. */
export const viewOf = (request: ModelRequest): RequestView => {
  const { before } = request;
  const [own, other] = [contentOfRequest(request), before && contentOfRequest(before)];
  const [now, then] = [messagesOf(own.messages), messagesOf(other?.messages ?? [])];
  const known = new Set(then.map(jsonOf));
  const kept = new Set(now.map(jsonOf));
  const differs = now.findIndex((message, index) => jsonOf(message) !== jsonOf(then[index]));
  const system = textOfSystem(own.options);
  const earlier = other && textOfSystem(other.options);
  const tools = toolsOf(own.options);
  const toolsBefore = new Map(toolsOf(other?.options ?? {}).map((it) => [it.name, jsonOf(it)]));
  const { system: _, tools: __, fixedSystem: ___, ...rest } = own.options;
  return {
    system,
    systemBefore: earlier === undefined || earlier === system ? undefined : earlier,
    messages: now.map((message) => ({
      ...message,
      isNew: other !== undefined && !known.has(jsonOf(message)),
    })),
    same: other === undefined ? 0 : differs === -1 ? now.length : differs,
    removed: then.filter((message) => !kept.has(jsonOf(message))),
    tools: tools.map((it) => ({
      ...it,
      isNew: other !== undefined && toolsBefore.get(it.name) !== jsonOf(it),
    })),
    removedTools: [...toolsBefore.keys()].filter((name) => tools.every((it) => it.name !== name)),
    options: Object.entries(rest).map(([name, value]) => ({
      ...{ name, value: withoutKeys(jsonOf(value)) },
      isNew: other !== undefined && jsonOf(value) !== jsonOf(other.options[name]),
    })),
  };
};

const jsonOf = (value: unknown): string => (value === undefined ? '' : JSON.stringify(value));

const messagesOf = (messages: readonly unknown[]): readonly RequestMessage[] =>
  messagesIn(messages).map((message) => ({
    ...{ id: stringOf(message['id']), role: stringOf(message['role']), isNew: false },
    text: withoutKeys(contentOf(message)),
  }));

/** The text of a message, its tool calls, or its tool results, with the ids that pair them. */
export const contentOf = (message: Fields): string =>
  message['role'] === 'tool'
    ? messagesIn(message['content'])
        .map((result) => `${stringOf(result['toolCallId'])} → ${textIn(result)}`)
        .join('\n')
    : [
        textIn(message),
        ...toolCallsIn(message).map(({ id, name, input }) => `${id}: ${name}(${jsonOf(input)})`),
      ]
        .filter((text) => text !== '')
        .join('\n');

const textOfSystem = ({ system }: Fields): string => withoutKeys(stringOf(system));

const toolsOf = ({ tools }: Fields): readonly RequestTool[] =>
  messagesIn(tools).map(({ name, description, inputSchema }) => ({
    ...{
      name: stringOf(name),
      description: withoutKeys(stringOf(description)),
      inputSchema,
      isNew: false,
    },
  }));

/** The request as the model gets it, as JSON without keys. */
export const rawRequest = (request: ModelRequest): string => {
  const { messages, options } = contentOfRequest(request);
  return withoutKeys(JSON.stringify({ ...options, messages }, null, 2));
};

/** The answer as the loop got it, as JSON without keys; `undefined` until then. */
export const rawAnswer = ({ answer }: ModelRequest): string | undefined => {
  if (answer === undefined) return undefined;
  const { message, finish, usage } = anyFields(answer.event);
  return withoutKeys(JSON.stringify({ message, finish, usage }, null, 2));
};

/** The status that is shown while there is no answer, without keys. */
export const withoutAnswer = ({ failure, isOver }: ModelRequest): string => {
  if (failure === undefined) return 'None yet.';
  const text = `${failure.code}. ${withoutKeys(failure.message)}`;
  return isOver ? `None. Failed: ${text}` : `None yet. The last attempt failed: ${text}`;
};

/** The name of the model: that of the answer, or the one that was asked. */
export const modelOf = ({ answer, model }: ModelRequest): string | undefined => {
  const { message } = answer === undefined ? {} : anyFields(answer.event);
  return stringOf(fieldsOf(fieldsOf(message)['vendor'])['model']) || model;
};
