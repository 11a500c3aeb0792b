import {
  type Message as A2aMessage,
  type Part,
  type StreamResponse,
  type Task,
  TaskState,
} from '@a2a-js/sdk';
import {
  type AgentEvent,
  type AssistantMessage,
  type Block,
  type ContentBlock,
  type EventOf,
  type Message,
  type TextBlock,
  textOf,
  toolCallsOf,
} from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
import type { ApprovalQueue } from '@millrace/server/approvals';
import type { ObservedValueOf } from 'rxjs';
import { artifactOf, dataPart, messageOf, partOf, textPart } from '../parts.js';

type Pending = ObservedValueOf<ApprovalQueue['requests$']>;

/** A tool that waits for the client. */
export interface Waiting {
  /** The id that answers refer to. */
  readonly id: string;
  readonly tool: string;
  /** Whether it needs its result, or a decision on its input. */
  readonly asks: 'result' | 'approval';
  /** Its request for a result, or the input to approve. */
  readonly shown: unknown;
  /** The token that decides. */
  readonly token?: string;
}

/** The state of a task after the events of its calls. */
export interface TaskView {
  readonly id: string;
  readonly contextId: string;
  readonly state: TaskState;
  /** When it entered its state, in milliseconds since the epoch. */
  readonly at: number;
  /** The message of its state. */
  readonly message?: A2aMessage;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly history: readonly A2aMessage[];
  /** The streamed answer; without an id, the next part replaces it. */
  readonly answer: { readonly messageId?: string; readonly text: string };
  /** The files and the structured output of the reply. */
  readonly files: readonly Part[];
  readonly output?: unknown;
  readonly waiting: readonly Waiting[];
  /** Its call waits only for results of the application: no client can continue it. */
  readonly isHeld: boolean;
  /** The requests that its current call answers, until the answers are stored. */
  readonly answered: readonly Waiting[];
  /** Approvals that were requested and not decided. */
  readonly requested: readonly string[];
  readonly pending: Pending;
  /** The last event, for a stream that continues after it. */
  readonly seq: number;
}

/** An event of the call of a task, or a change of the pending approvals. */
export type Happening = AgentEvent | { readonly type: 'pending'; readonly pending: Pending };

export type Update = StreamResponse;

export interface Change {
  readonly view: TaskView;
  readonly updates: readonly Update[];
}

export const newTask = (id: string, contextId: string, at: number): TaskView => ({
  id,
  contextId,
  at,
  state: TaskState.TASK_STATE_SUBMITTED,
  history: [],
  answer: { text: '' },
  files: [],
  waiting: [],
  isHeld: false,
  answered: [],
  requested: [],
  pending: [],
  seq: 0,
});

const { TASK_STATE_WORKING: working, TASK_STATE_INPUT_REQUIRED: inputRequired } = TaskState;

export const hasEnded = ({ state }: TaskView): boolean =>
  state === TaskState.TASK_STATE_COMPLETED ||
  state === TaskState.TASK_STATE_FAILED ||
  state === TaskState.TASK_STATE_CANCELED ||
  state === TaskState.TASK_STATE_REJECTED;

/** Whether streams of the task end: it has ended, or waits for the client or the program. */
export const isAtRest = (view: TaskView): boolean => hasEnded(view) || hasStopped(view);

/** Whether its call has ended, and another one continues it. */
export const hasStopped = ({ state, isHeld }: TaskView): boolean =>
  state === inputRequired || isHeld;

/** The task for clients, with up to this number of messages. */
export const taskOf = (view: TaskView, historyLength?: number): Task => ({
  id: view.id,
  contextId: view.contextId,
  status: statusOf(view),
  artifacts: [
    ...(view.answer.text === '' && view.files.length === 0
      ? []
      : [artifactOf('answer', 'answer', partsOfAnswer(view))]),
    ...(view.output === undefined ? [] : [outputArtifact(view.output)]),
  ],
  history: historyLength === 0 ? [] : view.history.slice(-(historyLength ?? Infinity)),
  metadata: view.metadata,
});

const statusOf = ({ state, message, at }: TaskView): NonNullable<Task['status']> => ({
  state,
  message,
  timestamp: new Date(at).toISOString(),
});

const partsOfAnswer = ({ answer: { text }, files }: TaskView): readonly Part[] => [
  ...(text === '' ? [] : [textPart(text)]),
  ...files,
];

const outputArtifact = (output: unknown): ReturnType<typeof artifactOf> =>
  artifactOf('output', 'output', [dataPart(parsedJson(JSON.stringify(output)))]);

/** The next view of a task, and what to send to clients. With `progress`, the tools that run as well. */
export const changeOf = (view: TaskView, happening: Happening, progress: boolean): Change => {
  if (happening.type === 'pending') return asked({ ...view, pending: happening.pending });
  const seen = { ...view, seq: happening.seq };
  const isRoot = happening.parentId === undefined;
  const { at } = happening;
  switch (happening.type) {
    case 'approvalRequested':
      return asked({ ...seen, requested: [...view.requested, keyOf(happening)] });
    case 'approvalDecided': {
      const requested = view.requested.filter((key) => key !== keyOf(happening));
      const decided = { ...seen, requested };
      return view.state === inputRequired ? into(decided, working, at) : still(decided);
    }
    case 'reasoningChunk':
    case 'summaryChunk':
      if (happening.kind !== 'text' || happening.delta === '') return still(seen);
      return isRoot || happening.speaks === true ? extended(seen, happening) : still(seen);
    case 'messageDiscarded':
      return still(withoutAnswer(seen, happening.messageId));
    case 'postReasoning':
    case 'postSummary':
      return isRoot || happening.speaks === true ? answered(seen, happening) : still(seen);
    default:
      if (!isRoot) return still(seen);
  }
  switch (happening.type) {
    case 'preCall':
      return begun(seen, happening);
    case 'preReasoning':
      // A failed call was resumed.
      return view.state === working ? still(seen) : into(seen, working, at);
    case 'messagesAppended':
      return still({ ...seen, answered: [] });
    case 'steered': {
      const { id, content } = happening.message;
      const added = spoken(seen, 'user', id, content.map(partOf));
      return still({ ...seen, history: [...seen.history, added] });
    }
    case 'preActing':
    case 'actingChunk':
    case 'postActing':
      return progress ? { view: seen, updates: [progressOf(seen, happening)] } : still(seen);
    case 'postCall':
      return replied(seen, happening);
    case 'error':
      return failed(seen, happening);
    default:
      return still(seen);
  }
};

const still = (view: TaskView): Change => ({ view, updates: [] });

/** Enters a state, with a status update. */
const into = (
  view: TaskView,
  state: TaskState,
  at: number,
  message?: A2aMessage,
  metadata?: Readonly<Record<string, unknown>>,
): Change => {
  const { message: _before, metadata: _of, ...rest } = view;
  const next: TaskView = {
    ...rest,
    ...{ state, at },
    ...(message !== undefined && { message }),
    ...(metadata !== undefined && { metadata }),
  };
  return { view: next, updates: [statusUpdate(next, metadata)] };
};

const statusUpdate = (view: TaskView, metadata?: Readonly<Record<string, unknown>>): Update => {
  const { id: taskId, contextId } = view;
  const value = { taskId, contextId, status: statusOf(view), metadata };
  return { payload: { $case: 'statusUpdate', value } };
};

const artifactUpdate = (
  { id: taskId, contextId }: TaskView,
  artifact: ReturnType<typeof artifactOf>,
  append: boolean,
  lastChunk = false,
): Update => ({
  payload: {
    $case: 'artifactUpdate',
    value: { taskId, contextId, artifact, append, lastChunk, metadata: undefined },
  },
});

const spoken = (
  { id: taskId, contextId }: TaskView,
  role: 'user' | 'agent',
  messageId: string,
  parts: readonly Part[],
): A2aMessage => messageOf(role, parts, { messageId, contextId, taskId });

// ---------------------------------------------------------------- the call

const begun = (view: TaskView, { input, at }: EventOf<'preCall'>): Change => {
  const { waiting, history } = view;
  const added = input
    .map((message) => questionOf(view, message))
    .filter(({ messageId }) => !history.some((known) => known.messageId === messageId));
  const next = {
    ...{ ...view, waiting: [], isHeld: false, answered: waiting },
    history: [...history, ...added],
  };
  return into(next, working, at);
};

/** A question, or the results that resume a call. */
const questionOf = (view: TaskView, message: Message): A2aMessage => {
  const content: readonly Block[] =
    message.role === 'tool' ? message.content.flatMap((result) => result.content) : message.content;
  return spoken(view, 'user', message.id, content.filter(isContent).map(partOf));
};

const isContent = (block: Block): block is ContentBlock => block.type === 'text' || isFile(block);

const isFile = (block: Block): block is Exclude<ContentBlock, TextBlock> =>
  block.type === 'image' || block.type === 'audio' || block.type === 'file';

const extended = (
  view: TaskView,
  { messageId, delta }: EventOf<'reasoningChunk'> | EventOf<'summaryChunk'>,
): Change => {
  const isMore = view.answer.messageId === messageId;
  const next = {
    ...view,
    answer: { messageId, text: isMore ? view.answer.text + delta : delta },
  };
  const artifact = artifactOf('answer', 'answer', [textPart(delta)]);
  return { view: next, updates: [artifactUpdate(view, artifact, isMore)] };
};

const withoutAnswer = (view: TaskView, messageId: string): TaskView =>
  view.answer.messageId === messageId ? { ...view, answer: { text: '' } } : view;

/** Handles the end of a message. Text next to tool calls is not the answer. */
const answered = (
  view: TaskView,
  event: EventOf<'postReasoning'> | EventOf<'postSummary'>,
): Change => {
  const { message, finish, at } = event;
  if (event.type === 'postReasoning' && event.again !== undefined) {
    return still(withoutAnswer(view, message.id));
  }
  const text = textOf(message);
  const calls = event.type === 'postReasoning' && finish === 'stop' ? toolCallsOf(message) : [];
  if (calls.length === 0) return shown(view, message);
  const silent = { ...view, answer: { text: '' } };
  if (text.trim() === '') return still(silent);
  const comment = spoken(view, 'agent', message.id, [textPart(text)]);
  return into({ ...silent, history: [...view.history, comment] }, working, at, comment);
};

/** Sends the whole answer if it differs from the streamed one. */
const shown = (
  view: TaskView,
  { id, content }: Pick<AssistantMessage, 'id' | 'content'>,
): Change => {
  const text = textOf({ content });
  if (text === view.answer.text) return still(view);
  const next = { ...view, answer: { messageId: id, text } };
  if (text === '') return still(next);
  const artifact = artifactOf('answer', 'answer', [textPart(text)]);
  return { view: next, updates: [artifactUpdate(view, artifact, false)] };
};

const replied = (view: TaskView, { reply, at, callId }: EventOf<'postCall'>): Change => {
  const { reason, iterations, output, content, suspensions = [] } = reply;
  const metadata = { millrace: { reason, iterations } };
  if (reason === 'suspended') {
    const waiting = suspensions
      .filter((it) => it.from === 'client')
      .map(({ toolCall, request }): Waiting => ({
        id: toolCall.id,
        tool: toolCall.name,
        asks: 'result',
        shown: request,
      }));
    if (waiting.length === 0) {
      const held = { ...view, answer: { text: '' }, answered: [], isHeld: true };
      return into(held, working, at, undefined, metadata);
    }
    return waitingFor({ ...view, answer: { text: '' } }, waiting, callId, at);
  }
  const last = shown(view, reply);
  const parts = content.filter(isFile).map(partOf);
  const whole = { ...last.view, files: parts, ...(output !== undefined && { output }) };
  const end = into(
    whole,
    endStates[reason] ?? TaskState.TASK_STATE_COMPLETED,
    at,
    undefined,
    metadata,
  );
  return {
    view: end.view,
    updates: [
      ...last.updates,
      ...(parts.length === 0
        ? []
        : [
            artifactUpdate(
              view,
              artifactOf('answer', 'answer', parts),
              last.view.answer.text !== '',
              true,
            ),
          ]),
      ...(output === undefined ? [] : [artifactUpdate(view, outputArtifact(output), false, true)]),
      ...end.updates,
    ],
  };
};

/** All other reasons complete a task. */
const endStates: Readonly<Partial<Record<string, TaskState>>> = {
  interrupted: TaskState.TASK_STATE_CANCELED,
  stopped: TaskState.TASK_STATE_CANCELED,
  refused: TaskState.TASK_STATE_REJECTED,
};

const failed = (view: TaskView, { error, at, callId }: EventOf<'error'>): Change => {
  if (error.code === 'aborted') return into(view, TaskState.TASK_STATE_CANCELED, at);
  // The answers were not stored, so the client may send them again.
  if (view.answered.length > 0) {
    return waitingFor(
      view,
      view.answered,
      callId,
      at,
      `${error.userMessage} Send the answer again.`,
    );
  }
  const message = spoken(view, 'agent', `${callId}/error`, [textPart(error.userMessage)]);
  const metadata = { millrace: { code: error.code } };
  return into(view, TaskState.TASK_STATE_FAILED, at, message, metadata);
};

// ---------------------------------------------------------------- questions to the client

const keyOf = ({ callId, toolCall }: EventOf<'approvalRequested'> | EventOf<'approvalDecided'>) =>
  `${callId}/${toolCall.id}`;

/** Requires input once an approval of the task can be decided. */
const asked = (view: TaskView): Change => {
  if (view.waiting.some(({ asks }) => asks === 'result')) return still(view);
  const waiting = view.pending.flatMap(
    ({ callId, toolCallId, tool, input, token }): readonly Waiting[] => {
      const id = `${callId}/${toolCallId}`;
      return view.requested.includes(id)
        ? [{ id, tool, asks: 'approval', shown: input, token }]
        : [];
    },
  );
  if (waiting.length === 0 || view.state === inputRequired) return still({ ...view, waiting });
  return waitingFor(view, waiting, waiting[0]?.id ?? '', Date.now());
};

const waitingFor = (
  view: TaskView,
  waiting: readonly Waiting[],
  id: string,
  at: number,
  ...before: readonly string[]
): Change => {
  const parts = [
    textPart([...before, ...waiting.map(sentenceOf)].join('\n')),
    ...waiting.map(({ id: toolCallId, tool, asks, shown: value }) =>
      dataPart(
        asks === 'result'
          ? { toolCallId, tool, request: value }
          : { toolCallId, tool, input: value, asks: 'approval' },
      ),
    ),
  ];
  const question = spoken(view, 'agent', `${id}/question`, parts);
  const history = [...view.history, question];
  return into({ ...view, waiting, history, answered: [] }, inputRequired, at, question);
};

const sentenceOf = ({ tool, asks, shown: request }: Waiting): string => {
  if (asks === 'approval') return `Approve the tool '${tool}'?`;
  if (typeof request === 'string' && request !== '') return request;
  const [question] = ['question', 'message', 'prompt'].flatMap((key) => {
    const value = isRecord(request) && Object.hasOwn(request, key) ? request[key] : undefined;
    return typeof value === 'string' && value !== '' ? [value] : [];
  });
  return question ?? `The tool '${tool}' waits for its result.`;
};

// ---------------------------------------------------------------- progress

const progressOf = (
  view: TaskView,
  event: EventOf<'preActing'> | EventOf<'actingChunk'> | EventOf<'postActing'>,
): Update => {
  const { id: toolCallId, name } = event.toolCall;
  const tool = { toolCallId, name, ...progressFields(event) };
  return statusUpdate(view, { millrace: { tool } });
};

const progressFields = (
  event: EventOf<'preActing'> | EventOf<'actingChunk'> | EventOf<'postActing'>,
): object => {
  switch (event.type) {
    case 'preActing':
      return { status: 'started' };
    case 'actingChunk':
      return { status: 'running', progress: jsonOf(event.value) };
    case 'postActing':
      if (event.result.suspended !== undefined) return { status: 'suspended' };
      return { status: event.result.isError ? 'failed' : 'done' };
  }
};

/** A value that JSON cannot represent is left out. */
const jsonOf = (value: unknown): unknown => {
  try {
    return parsedJson(JSON.stringify(value));
  } catch {
    return undefined;
  }
};
