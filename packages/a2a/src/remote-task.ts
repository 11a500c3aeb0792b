import { type Artifact, type Part, type StreamResponse, type Task, TaskState } from '@a2a-js/sdk';
import { type ContentBlock, suspend, textBlock, toolOutput, type ToolOutput } from 'millrace';
import { blockOf } from './parts.js';
import { cleaned } from './remote.js';

/** A task of a remote agent, as its updates have left it. */
export interface RemoteTask {
  readonly taskId: string;
  readonly contextId: string;
  readonly state: TaskState;
  readonly artifacts: readonly Artifact[];
  /** The message of its state, or of an answer without a task. */
  readonly statement: readonly Part[];
}

/** An update for the user interface. */
export interface RemoteProgress {
  /** The state of the task, such as `working`. */
  readonly state: string;
  /** The new text of an artifact, or the message of the state. */
  readonly text?: string;
  /** Whether the text replaces what the artifact had before. */
  readonly replaces?: boolean;
}

export const noTask: RemoteTask = {
  taskId: '',
  contextId: '',
  state: TaskState.TASK_STATE_SUBMITTED,
  artifacts: [],
  statement: [],
};

const ended: readonly TaskState[] = [
  TaskState.TASK_STATE_COMPLETED,
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
  TaskState.TASK_STATE_REJECTED,
];

export const hasEnded = ({ state }: RemoteTask): boolean => ended.includes(state);

/** Whether the tool has its result. */
export const isAtRest = (task: RemoteTask): boolean =>
  hasEnded(task) ||
  task.state === TaskState.TASK_STATE_INPUT_REQUIRED ||
  task.state === TaskState.TASK_STATE_AUTH_REQUIRED;

export const ofTask = ({ id, contextId, status, artifacts }: Task): RemoteTask => ({
  taskId: id,
  contextId,
  state: status?.state ?? TaskState.TASK_STATE_SUBMITTED,
  artifacts,
  statement: status?.message?.parts ?? [],
});

/** The ids by which a stream is recognized; an empty one is not known yet. */
export type TaskIds = Pick<RemoteTask, 'taskId' | 'contextId'>;

/** Whether an update is of this task. One without an id is of the task of its stream. */
export const isOwn = (own: TaskIds, named: Partial<TaskIds>): boolean =>
  isSameId(own.taskId, named.taskId) && isSameId(own.contextId, named.contextId);

const isSameId = (own: string, named = ''): boolean => own === '' || named === '' || own === named;

/** The task after an update, and the progress to report. Ignores an update of another task or context. */
export const taskAfter = (
  task: RemoteTask,
  { payload }: StreamResponse,
  asked: TaskIds = noTask,
): readonly [RemoteTask, RemoteProgress | undefined] => {
  const own = task.taskId === '' ? asked : task;
  if (payload !== undefined && !isOwn(own, idsOf(payload))) return [task, undefined];
  switch (payload?.$case) {
    case 'message': {
      const { contextId, parts } = payload.value;
      const state = TaskState.TASK_STATE_COMPLETED;
      return [{ ...task, contextId, state, statement: parts }, undefined];
    }
    case 'task': {
      const next = ofTask(payload.value);
      return [next, progressOf(next, next.statement)];
    }
    case 'statusUpdate': {
      const { status } = payload.value;
      const next = {
        ...task,
        ...idsAfter(task, payload.value),
        state: status?.state ?? task.state,
        statement: status?.message?.parts ?? [],
      };
      return [next, progressOf(next, next.statement)];
    }
    case 'artifactUpdate': {
      const { artifact, append } = payload.value;
      if (artifact === undefined) return [task, undefined];
      const artifacts = withArtifact(task.artifacts, artifact, append);
      const next = { ...task, ...idsAfter(task, payload.value), artifacts };
      return [next, { ...progressOf(next, artifact.parts), replaces: !append }];
    }
    default:
      return [task, undefined];
  }
};

const idsOf = ({ $case, value }: NonNullable<StreamResponse['payload']>): TaskIds => ({
  taskId: $case === 'task' ? value.id : value.taskId,
  contextId: value.contextId,
});

/** The ids after an update, which may lack them. */
const idsAfter = (task: RemoteTask, { taskId, contextId }: TaskIds): TaskIds => ({
  taskId: taskId || task.taskId,
  contextId: contextId || task.contextId,
});

const withArtifact = (
  artifacts: readonly Artifact[],
  artifact: Artifact,
  append: boolean,
): readonly Artifact[] => {
  const at = artifacts.findIndex(({ artifactId }) => artifactId === artifact.artifactId);
  const before = artifacts[at];
  if (before === undefined) return [...artifacts, artifact];
  // Append in place: the list of a long stream would be copied for each chunk.
  if (append) before.parts.push(...artifact.parts);
  return append ? artifacts : artifacts.with(at, artifact);
};

const progressOf = ({ state }: RemoteTask, parts: readonly Part[]): RemoteProgress => {
  const text = cleaned(textIn(parts), maxText);
  return { state: nameOf(state), ...(text !== '' && { text }) };
};

const maxText = 100_000;

const nameOf = (state: TaskState): string =>
  TaskState[state].replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');

const textIn = (parts: readonly Part[]): string =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');

// ---------------------------------------------------------------- the result

/** The question of a remote agent, as the request of a suspended tool. */
export interface RemoteQuestion {
  readonly question: string;
  readonly taskId: string;
  readonly contextId: string;
}

/** Who continues a suspended call. */
export const suspendedBy = 'a2a';

/** The output of the tool for a task at rest. */
export const outputOf = (task: RemoteTask, onInput: 'model' | 'suspend'): ToolOutput => {
  const { taskId, contextId, state } = task;
  const details = { state: nameOf(state), taskId, contextId };
  const statement = cleaned(textIn(task.statement), maxText);
  switch (state) {
    case TaskState.TASK_STATE_COMPLETED:
      return toolOutput({ content: contentOf(task), details });
    case TaskState.TASK_STATE_INPUT_REQUIRED: {
      const question = statement === '' ? 'The agent needs more information.' : statement;
      if (onInput === 'suspend') {
        const request: RemoteQuestion = { question, taskId, contextId };
        // The answer is sent with `answer$()` of the tool, which no client of this program can call.
        return { ...suspend(request, { from: 'program', by: suspendedBy }), details };
      }
      const hint = `The agent waits for an answer. To send it, call this tool again with the taskId ${JSON.stringify(taskId)}.`;
      return toolOutput({ content: `${question}\n\n${hint}`, details });
    }
    default: {
      const content = `The agent ended the task as ${nameOf(state)}.${statement === '' ? '' : ` ${statement}`}`;
      return toolOutput({ content, isError: true, details });
    }
  }
};

/** The artifacts, or the message of a task without any. */
const contentOf = ({ artifacts, statement }: RemoteTask): readonly ContentBlock[] => {
  const lists = artifacts.some(({ parts }) => parts.length > 0)
    ? artifacts.map(({ parts }) => parts)
    : [statement];
  const blocks = lists.flatMap(joined);
  return blocks.length === 0 ? [textBlock('(no output)')] : blocks;
};

/** The blocks of an artifact. Chunks of text are one block. */
const joined = (parts: readonly Part[]): readonly ContentBlock[] => {
  const blocks: ContentBlock[] = [];
  let isText = false;
  for (const part of parts) {
    const block = readable(part);
    const before = blocks.at(-1);
    const isChunk = part.content?.$case === 'text';
    if (isChunk && isText && before?.type === 'text' && block.type === 'text') {
      blocks[blocks.length - 1] = textBlock(before.text + block.text);
    } else blocks.push(block);
    isText = isChunk;
  }
  return blocks;
};

const readable = (part: Part): ContentBlock => {
  const block = blockOf(part);
  if (block?.type === 'text') return textBlock(cleaned(block.text, Infinity));
  if (block !== undefined) return block;
  return textBlock(
    part.content?.$case === 'url' ? `File: ${cleaned(part.content.value, 2_000)}` : '(no content)',
  );
};
