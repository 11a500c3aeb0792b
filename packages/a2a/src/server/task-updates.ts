import type { Message as A2aMessage, Part, StreamResponse, TaskState } from '@a2a-js/sdk';
import { type artifactOf, messageOf } from '../parts.js';
import { statusOf, type TaskView } from './task-view.js';

/** A message to the clients of a task. */
export type Update = StreamResponse;

/** The view after an event, and the messages to clients. */
export interface Change {
  readonly view: TaskView;
  readonly updates: readonly Update[];
}

export const still = (view: TaskView): Change => ({ view, updates: [] });

/** Enters a state, with a status update. */
export const into = (
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

export const statusUpdate = (
  view: TaskView,
  metadata?: Readonly<Record<string, unknown>>,
): Update => {
  const { id: taskId, contextId } = view;
  const value = { taskId, contextId, status: statusOf(view), metadata };
  return { payload: { $case: 'statusUpdate', value } };
};

export const artifactUpdate = (
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

export const spoken = (
  { id: taskId, contextId }: TaskView,
  role: 'user' | 'agent',
  messageId: string,
  parts: readonly Part[],
): A2aMessage => messageOf(role, parts, { messageId, contextId, taskId });
