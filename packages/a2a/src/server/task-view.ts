import { type Message as A2aMessage, type Part, type Task, TaskState } from '@a2a-js/sdk';
import { parsedJson } from 'millrace/values';
import type { ApprovalQueue } from '@millrace/server/approvals';
import type { ObservedValueOf } from 'rxjs';
import { artifactOf, dataPart, textPart } from '../parts.js';

export type Pending = ObservedValueOf<ApprovalQueue['requests$']>;

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

export const hasEnded = ({ state }: TaskView): boolean =>
  state === TaskState.TASK_STATE_COMPLETED ||
  state === TaskState.TASK_STATE_FAILED ||
  state === TaskState.TASK_STATE_CANCELED ||
  state === TaskState.TASK_STATE_REJECTED;

/** Whether streams of the task end: it has ended, or waits for the client or the program. */
export const isAtRest = (view: TaskView): boolean => hasEnded(view) || hasStopped(view);

/** Whether its call has ended, and another one continues it. */
export const hasStopped = ({ state, isHeld }: TaskView): boolean =>
  state === TaskState.TASK_STATE_INPUT_REQUIRED || isHeld;

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

export const statusOf = ({ state, message, at }: TaskView): NonNullable<Task['status']> => ({
  state,
  message,
  timestamp: new Date(at).toISOString(),
});

const partsOfAnswer = ({ answer: { text }, files }: TaskView): readonly Part[] => [
  ...(text === '' ? [] : [textPart(text)]),
  ...files,
];

export const outputArtifact = (output: unknown): ReturnType<typeof artifactOf> =>
  artifactOf('output', 'output', [dataPart(parsedJson(JSON.stringify(output)))]);
